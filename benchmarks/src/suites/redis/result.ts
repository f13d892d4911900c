import type { Comparison } from '../../compare/comparison.ts';
import type { KilledResult } from '../../compare/killed.ts';
import type { WaitingResult } from '../../compare/waiting.ts';
import type { ReportHead } from '../../report/head.ts';
import type { Settings } from './settings.ts';

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

export interface MemoryResult {
  readonly contender: string;
  readonly names: number;
  readonly perSecond: number;
  readonly heapGrowthBytes: number;
  readonly tokenKeys: number;
  /** The keys that are left in Redis beside the token keys. */
  readonly otherKeys: number;
}

export interface CoreResult {
  readonly withCoreMicros: number;
  readonly bareBackendMicros: number;
  /** The median of the differences. */
  readonly coreMicros: number;
}

export interface Report extends ReportHead {
  readonly suite: 'redis';
  readonly settings: Settings;
  readonly comparisons: readonly Comparison[];
  readonly core?: CoreResult;
  readonly renewal?: readonly RenewalResult[];
  readonly waiting?: readonly WaitingResult[];
  readonly killed?: readonly KilledResult[];
  readonly memory?: readonly MemoryResult[];
}
