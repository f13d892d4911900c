import type { HistoryEvent, HistoryMode } from '../src/history-event.ts';

/** A sequence of numbers from 0 to 1 that a seed gives (the generator "mulberry32"). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Draft {
  readonly time: number;
  readonly event: Omit<HistoryEvent, 'time'>;
}

const FAMILIES: readonly (readonly HistoryMode[])[] = [
  [{ kind: 'exclusive' }],
  [{ kind: 'exclusive' }, { kind: 'shared' }, { kind: 'shared' }],
  [
    { kind: 'permit', weight: 1, limit: 3 },
    { kind: 'permit', weight: 2, limit: 3 },
  ],
  [{ kind: 'exclusive' }, { kind: 'shared' }, { kind: 'permit', weight: 1, limit: 1 }],
  [
    { kind: 'permit', weight: 1, limit: 2 },
    { kind: 'permit', weight: 1, limit: 3 },
  ],
];

/**
 * A small history of one resource. Mostly a lock answers as it should, with calls that overlap; now and then a time, a token, an
 * owner or an outcome is not what it should be.
 */
export function randomHistory(random: () => number): HistoryEvent[] {
  const below = (limit: number): number => Math.floor(random() * limit);
  const chance = (of: number): boolean => random() < of;
  const modes = FAMILIES[below(FAMILIES.length)] as readonly HistoryMode[];
  const hasTokens = chance(0.7);
  const drafts: Draft[] = [];
  let call = 0;
  let clock = 0;
  for (let index = 0, count = 2 + below(3); index < count; index += 1) {
    const process = `p${below(3)}`;
    const acquisitionId = `x${index}`;
    const mode = modes[below(modes.length)] as HistoryMode;
    const token =
      hasTokens && !chance(0.05) ? String(chance(0.12) ? below(count + 1) : index + 1) : undefined;
    // A hold begins about when the one before ends.
    const from = clock - (chance(0.3) ? 6 * random() : 0);
    const until = from + 2 + 8 * random();
    clock = until + (chance(0.25) ? -8 * random() : 3 * random());
    const one = (
      operation: 'acquire' | 'release',
      begin: number,
      end: number,
      by: string,
      outcome: string,
    ) => {
      const common = { operation, process: by, id: (call += 1), resource: 'r', acquisitionId } as const;
      const isEntry = operation === 'acquire';
      drafts.push({ time: begin, event: { ...common, type: 'invoke', ...(isEntry && { mode }) } });
      if (outcome === 'none') return;
      const type = outcome as HistoryEvent['type'];
      drafts.push({
        time: end,
        event: { ...common, type, ...(isEntry && type === 'ok' && token !== undefined && { token }) },
      });
    };
    const reach = () => (chance(0.5) ? 3 * random() : 0.2 * random());
    const entry = chance(0.08) ? (chance(0.5) ? 'info' : 'none') : chance(0.05) ? 'fail' : 'ok';
    one('acquire', from - reach(), from + 0.5 * random(), process, entry);
    if (entry === 'fail' || (entry !== 'ok' && chance(0.6))) continue;
    const isEnteredAgain = entry === 'ok' && chance(0.15);
    if (isEnteredAgain) {
      const again = from + 0.6 + 1.2 * random() + (chance(0.15) ? 10 : 0);
      one('acquire', again, again + reach(), chance(0.1) ? 'p9' : process, chance(0.1) ? 'info' : 'ok');
    }
    for (let release = isEnteredAgain && !chance(0.15) ? 2 : 1; release > 0; release -= 1) {
      const way = random();
      if (way < 0.75) {
        const begin = until - reach() / 3;
        const outcome = chance(0.12) ? 'info' : chance(0.05) ? 'fail' : 'ok';
        one('release', begin, until + reach(), chance(0.04) ? 'p9' : process, outcome);
        if (chance(0.05)) one('release', until + 3.1, until + 3.5, process, 'ok');
      } else if (way < 0.87) {
        const endedAt = until - (chance(0.5) ? 1 : 0);
        const common = { operation: 'loss', type: 'info', process, resource: 'r', acquisitionId } as const;
        drafts.push({ time: until, event: { ...common, endedAt } });
        if (chance(0.2)) one('release', until + 0.1, until + 0.4, process, 'ok');
        break;
      }
    }
  }
  if (chance(0.1)) {
    const latest = Math.max(
      ...drafts.filter(({ event }) => event.process === 'p0').map(({ time }) => time),
      0,
    );
    drafts.push({ time: latest + 0.01, event: { type: 'info', operation: 'crash', process: 'p0' } });
  }
  return drafts.sort((a, b) => a.time - b.time).map(({ time, event }) => ({ ...event, time }));
}
