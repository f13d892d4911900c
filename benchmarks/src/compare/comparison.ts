import type { Contender } from '../contenders/contender.ts';
import type { Counted } from '../measure/meter.ts';
import { median } from '../measure/quantiles.ts';

/** How long and how often contenders are compared. */
export interface CompareSettings {
  readonly rounds: number;
  readonly warmUpMs: number;
  /** How long bursts are repeated before they count. */
  readonly warmUpBurstsMs: number;
  /** How long a contender warms up before each block, since the others had the processor and its caches. */
  readonly leadInMs: number;
  /** The length of an uncontended block; each contender has two in a round. */
  readonly blockMs: number;
  /** Bursts of a contended block are repeated for this long. */
  readonly burstsMs: number;
  /** A burst is cut short after this: some peers serve four waiters a second. */
  readonly burstLimitMs: number;
  readonly turnsLimitMs: number;
  /** How many times each waiter takes the lock in the warm-up of a contended row. @defaultValue 20 */
  readonly rushTurns?: number;
  readonly sectionMs: number;
}

/** What one contender did in one round of a row. */
export interface Round {
  /** Acquisitions a second: uncontended pairs, or hand-offs. */
  readonly perSecond: number;
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  /** The median from one holder's exit to the next one's entry. This and the following figures: contended only. */
  readonly gapMs?: number;
  /** The `PING` round trip just before the block: back to back, and each after a rest as long as a critical section. */
  readonly pingMs?: number;
  readonly restedPingMs?: number;
  /** Per acquisition, where the server reports it: the time in the commands of clients, and all its processor time. */
  readonly serverMicros?: number;
  readonly serverCpuMicros?: number;
  /** Processor time of the client's thread. Uncontended only. */
  readonly clientCpuMicros?: number;
  readonly overlaps: number;
  /** The time limit ended the block: its waits would have been longer. */
  readonly cut: boolean;
}

/** What the server saw of clients in an untimed run. */
export interface CountedRequests {
  readonly perOperation: number;
  readonly operations: number;
  readonly requests: number;
  readonly elapsedMs: number;
  readonly byCommand: Readonly<Record<string, number>>;
  /** Sent by clients and called in scripts: `serverMicros` counts these twice. */
  readonly alsoInScripts: readonly string[];
  /** Writes that were refused since another one came first, per acquisition; where the clients count them. */
  readonly conflictsPerOperation?: number;
}

export interface ContenderResult extends Pick<Contender, 'name' | 'kind' | 'floor'> {
  readonly rounds: readonly Round[];
  readonly counted: CountedRequests;
}

/** A row in which all contenders are compared. */
export interface Comparison {
  readonly id: string;
  readonly title: string;
  readonly contended: boolean;
  readonly processes: number;
  readonly contenders: readonly ContenderResult[];
}

export function countedOf(
  { sent, total, alsoInScripts, conflicts }: Counted,
  operations: number,
  elapsedMs: number,
): CountedRequests {
  return {
    perOperation: total / operations,
    operations,
    requests: total,
    elapsedMs,
    byCommand: Object.fromEntries(sent),
    alsoInScripts,
    ...(conflicts !== undefined && { conflictsPerOperation: conflicts / operations }),
  };
}

/** The median of one figure over the rounds. */
export function typical(result: ContenderResult, figure: (round: Round) => number): number {
  return median(result.rounds.map(figure));
}

/** The median over the rounds of `combine(one, other)` of the same round. */
export function paired(
  one: ContenderResult,
  other: ContenderResult,
  combine: (one: Round, other: Round) => number,
): number {
  const rounds = one.rounds.slice(0, other.rounds.length);
  return median(rounds.map((round, index) => combine(round, other.rounds[index] as Round)));
}

export function floorOf(comparison: Comparison, result: ContenderResult): ContenderResult | undefined {
  return comparison.contenders.find(({ name }) => name === result.floor);
}

export function overlapsOf({ rounds }: ContenderResult): number {
  return rounds.reduce((sum, round) => sum + round.overlaps, 0);
}

export function gapInPings(result: ContenderResult): number {
  return typical(result, ({ gapMs = Number.NaN, pingMs = Number.NaN }) => gapMs / pingMs);
}

export function gapInRestedPings(result: ContenderResult): number {
  return typical(result, ({ gapMs = Number.NaN, restedPingMs = Number.NaN }) => gapMs / restedPingMs);
}
