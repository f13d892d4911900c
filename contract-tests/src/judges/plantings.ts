import type { HistoryEvent } from '@locks/history';
import type { SeededRandom } from '../lab/random.ts';

/** Breaks the history of one lock; `undefined` where it has no suitable hold that a release ended. */
type Planting = (events: readonly HistoryEvent[], random: SeededRandom) => HistoryEvent[] | undefined;

/** The four events of a hold of a process that released it. */
interface ReleasedHold {
  readonly asked: HistoryEvent;
  readonly granted: HistoryEvent;
  readonly releasing: HistoryEvent;
  readonly released: HistoryEvent;
}

type Edit = (events: readonly HistoryEvent[], hold: ReleasedHold) => HistoryEvent[];

/** A second holder in the middle of a hold. */
const intruder: Edit = (events, { asked, granted, releasing }) => {
  const mode = asked.mode?.kind === 'shared' ? undefined : asked.mode;
  const whole = mode?.kind === 'permit' ? { ...mode, weight: mode.limit } : mode;
  const { resource } = granted;
  const time = middle(granted, releasing);
  const call = { process: 'intruder', time, operation: 'acquire', ...{ id: 1, resource } } as const;
  return [
    ...events,
    { ...call, type: 'invoke', ...(whole && { mode: whole }) },
    { ...call, type: 'ok', acquisitionId: 'intruder', token: `${BigInt(granted.token ?? 0) + 1n}` },
    { ...call, time: releasing.time, type: 'invoke', operation: 'release', acquisitionId: 'intruder', id: 2 },
  ];
};

/** How a recorded history is broken. */
export const plantings: Readonly<Record<string, Planting>> = {
  'a second holder': inAHold(intruder),
  "another's release": inAHold((events, { releasing, released }) =>
    events.map((event) =>
      event === releasing || event === released ? { ...event, process: 'another' } : event,
    ),
  ),
  'a token that falls': inAHold(
    (events, { granted }) => events.map((event) => (event === granted ? { ...event, token: '0' } : event)),
    (hold, holds) =>
      holds.some(
        ({ asked, releasing }) => releasing.time < hold.granted.time && areRivals(asked, hold.asked),
      ),
  ),
  'a grant without a token': inAHold((events, { granted }) =>
    events.map((event) => {
      const { token: _, ...rest } = event;
      return event === granted ? rest : event;
    }),
  ),
  'a second entry': inAHold((events, { asked, granted, releasing }) => {
    const time = middle(granted, releasing);
    return [...events, { ...asked, time, id: -1 }, { ...granted, time, id: -1 }];
  }),
  'a second release': inAHold((events, { releasing, released }) => {
    const { time } = released;
    return [...events, { ...releasing, time, id: -1 }, { ...released, time, id: -1 }];
  }),
};

function inAHold(
  edit: Edit,
  suits: (hold: ReleasedHold, holds: readonly ReleasedHold[]) => boolean = () => true,
): Planting {
  return (events, random) => {
    const holds = releasedHolds(events);
    const suitable = holds.filter((one) => suits(one, holds));
    if (suitable.length === 0) return undefined;
    return edit(events, random.one(suitable)).sort((a, b) => a.time - b.time);
  };
}

/** Whether two acquires exclude each other. */
function areRivals({ mode: one }: HistoryEvent, { mode: other }: HistoryEvent): boolean {
  if (one?.kind === 'permit' && other?.kind === 'permit') return one.weight + other.weight > one.limit;
  return one?.kind !== 'shared' || other?.kind !== 'shared';
}

function releasedHolds(events: readonly HistoryEvent[]): ReleasedHold[] {
  const calls = new Map<string, HistoryEvent>();
  const grants = new Map<string, Pick<ReleasedHold, 'asked' | 'granted'>>();
  const holds: ReleasedHold[] = [];
  for (const event of events) {
    const { type, operation, process, id, acquisitionId = '' } = event;
    const call = `${process} ${id}`;
    const begun = calls.get(call);
    if (type === 'invoke') calls.set(call, event);
    if (type !== 'ok' || begun === undefined) continue;
    if (operation === 'acquire') grants.set(acquisitionId, { asked: begun, granted: event });
    const grant = grants.get(acquisitionId);
    if (operation === 'release' && grant !== undefined)
      holds.push({ ...grant, releasing: begun, released: event });
  }
  return holds.sort((a, b) => a.granted.time - b.granted.time);
}

function middle(one: HistoryEvent, other: HistoryEvent): number {
  return (one.time + other.time) / 2;
}
