import type { HistoryMode } from './history-event.ts';
import type { TraceCapabilities, TraceLine } from './trace-line.ts';
import type { RuleBook, TracePlace, TraceRule } from './trace-rules.ts';

/** A line with its place, and with its time on a clock that all processes of the trace share. */
export type PlacedLine<L extends TraceLine = TraceLine> = {
  readonly event: L;
  readonly time: number;
} & TracePlace;

export type LineOf<Step extends TraceLine['step']> = PlacedLine<Extract<TraceLine, { step: Step }>>;

/** A manager of a process. */
export interface TracedClient {
  readonly backend: string;
  readonly store: string;
  readonly capabilities: TraceCapabilities;
  closed: PlacedLine | undefined;
}

/** One run of a program. */
export interface TracedProcess {
  readonly name: string;
  readonly machine: string;
  readonly lines: PlacedLine[];
  readonly clients: Map<number, TracedClient>;
  /** Lines are missing: nothing follows from the absence of a line. */
  isIncomplete: boolean;
}

/** All that a trace says of one acquisition id. */
export interface TracedAcquisition {
  readonly name: string;
  readonly id: string;
  readonly process: TracedProcess;
  readonly client: TracedClient;
  /** Whether the trace has it from its first attempt on. */
  readonly isWhole: boolean;
  mode: HistoryMode;
  sent: PlacedLine | undefined;
  /** The highest end that the store has confirmed, on the manager's clock. */
  confirmedUntil: number;
  granted: PlacedLine | undefined;
  token: string | undefined;
  believed: LineOf<'believes'> | undefined;
  lastBelieved: LineOf<'believes'> | undefined;
  end: LineOf<'ends'> | undefined;
  abandon: PlacedLine | undefined;
  release: PlacedLine | undefined;
  /** How often it was released. */
  releases: number;
  /** The answer to its first release, where the store did not have it. */
  notHeld: PlacedLine | undefined;
  transfer: PlacedLine | undefined;
  downgrade: PlacedLine | undefined;
  renewal: PlacedLine | undefined;
  lost: PlacedLine | undefined;
  gaveUp: PlacedLine | undefined;
  /** How many attempts were sent that were not answered with `full`: by them the store may know the id. */
  attempts: number;
  /** Renewals with different ttls may be carried out in any order (docs/spec.md §1.7). */
  renewedForMs: number | undefined;
  hasOtherTtls: boolean;
}

type Beginning = Pick<TracedAcquisition, 'name' | 'id' | 'mode' | 'client' | 'process' | 'isWhole'>;

/** An acquisition of which no line has been read. */
export function newAcquisition(beginning: Beginning): TracedAcquisition {
  const none = undefined;
  return {
    ...beginning,
    confirmedUntil: Number.NEGATIVE_INFINITY,
    attempts: 0,
    releases: 0,
    hasOtherTtls: false,
    renewedForMs: undefined,
    ...{ sent: none, granted: none, token: none, believed: none, lastBelieved: none, end: none },
    ...{ abandon: none, release: none, notHeld: none, transfer: none, downgrade: none },
    ...{ renewal: none, lost: none, gaveUp: none },
  };
}

/** A time in which an operator or another client may have ended holds of a resource. */
export interface TakenAway {
  readonly from: number;
  until: number;
  /** The only hold that may have been ended; `undefined`: any. */
  readonly id: string | undefined;
  /** The acquisition that took it. */
  readonly by: string | undefined;
}

/** What is known of a resource beside its acquisitions. */
export interface TracedResource {
  readonly name: string;
  readonly acquisitions: Map<string, TracedAcquisition>;
  readonly takenAway: TakenAway[];
  /** The limits that were set. */
  readonly limits: number[];
}

/** Notes a check of one acquisition. */
export function checkAcquisition(
  book: RuleBook,
  rule: TraceRule,
  holds: boolean,
  { process, id, name }: TracedAcquisition,
  what: string,
  ...lines: readonly (PlacedLine | undefined)[]
): void {
  book.check(rule, holds, name, () => [
    `${process.name}'s acquisition ${JSON.stringify(id)} of ${JSON.stringify(name)}: ${what}.`,
    ...lines,
  ]);
}

/** Until when an acquisition counted as held, on the clock that all processes share. */
export function believedUntil({ end, lastBelieved, process, client }: TracedAcquisition): number {
  if (lastBelieved === undefined) return Number.NEGATIVE_INFINITY;
  const { endsAt = Number.POSITIVE_INFINITY, time } = lastBelieved.event;
  const shift = lastBelieved.time - time;
  if (end !== undefined) {
    const endsBefore = (end.event.endsAt ?? Number.POSITIVE_INFINITY) + (end.time - end.event.time);
    return Math.min(end.time, endsBefore);
  }
  const last = process.lines.at(-1) as PlacedLine;
  // A session lasts for longer than the last line about a lease says.
  if (client.capabilities.tenure === 'session') return last.time;
  // Whoever was killed may have released what it held, and not have written that any more.
  return last.event.step === 'end' ? endsAt + shift : Math.min(last.time, endsAt + shift);
}

/** For how long a process has shown that it runs, between two times: from its first to its last line there. */
export function awakeMs({ lines }: TracedProcess, from: number, to: number): number {
  let first = lowerBound(lines, from);
  let last = lowerBound(lines, to) - 1;
  return last > first ? (lines[last] as PlacedLine).time - (lines[first] as PlacedLine).time : 0;
}

/** The index of the first line that is not before a time. */
function lowerBound(lines: readonly PlacedLine[], time: number): number {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines[middle] as PlacedLine).time < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
