import type { Contender } from '../../contenders/contender.ts';
import type { Machine } from '../../measure/machine.ts';
import { median } from '../../measure/quantiles.ts';
import type { Settings } from './settings.ts';

/** What one contender did in one round of a row. */
export interface Round {
  /** Acquisitions a second: uncontended pairs, or hand-offs. */
  readonly perSecond: number;
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  /** From one holder's exit to the next one's entry, the median. Contended only, as what follows. */
  readonly gapMs?: number;
  /** The `PING` round trip just before: one after the other, and each after a rest as long as a critical section. */
  readonly pingMs?: number;
  readonly restedPingMs?: number;
  /** Per acquisition: in the commands that clients sent, and all processor time of the server. */
  readonly serverMicros: number;
  readonly serverCpuMicros: number;
  /** Processor time of the client's thread. Uncontended only. */
  readonly clientCpuMicros?: number;
  readonly overlaps: number;
  /** The time limit ended it: its waits would have been longer. */
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
}

export interface ContenderResult extends Pick<Contender, 'name' | 'kind' | 'floor'> {
  readonly rounds: readonly Round[];
  readonly counted: CountedRequests;
}

export type ComparisonId = 'sequential' | 'keys' | 'waiters' | 'processes' | 'turns';

/** A row in which all contenders are compared. */
export interface Comparison {
  readonly id: ComparisonId;
  readonly title: string;
  readonly contended: boolean;
  readonly processes: number;
  readonly contenders: readonly ContenderResult[];
}

export interface RenewalResult {
  readonly contender: string;
  readonly leases: number;
  readonly ttlMs: number;
  readonly timers: number;
  readonly requestsByRound: readonly number[];
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  readonly valid: number;
}

export interface WaitingResult {
  readonly contender: string;
  readonly waiters: number;
  readonly locks: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
}

export interface MemoryResult {
  readonly contender: string;
  readonly names: number;
  readonly perSecond: number;
  readonly heapGrowthBytes: number;
  readonly tokenKeys: number;
  /** What is left in Redis beside the token keys. */
  readonly otherKeys: number;
}

export interface CoreResult {
  readonly withCoreMicros: number;
  readonly bareBackendMicros: number;
  /** The median of the differences. */
  readonly coreMicros: number;
}

export interface Report {
  readonly schema: 1;
  readonly suite: 'redis';
  readonly date: string;
  readonly machine: Machine;
  readonly placement: string;
  readonly pinned: boolean;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: Settings;
  readonly comparisons: readonly Comparison[];
  readonly core?: CoreResult;
  readonly renewal?: readonly RenewalResult[];
  readonly waiting?: readonly WaitingResult[];
  readonly memory?: readonly MemoryResult[];
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

export function gapInPings(result: ContenderResult): number {
  return typical(result, ({ gapMs = Number.NaN, pingMs = Number.NaN }) => gapMs / pingMs);
}

export function gapInRestedPings(result: ContenderResult): number {
  return typical(result, ({ gapMs = Number.NaN, restedPingMs = Number.NaN }) => gapMs / restedPingMs);
}
