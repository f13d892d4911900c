import type { LockOptions } from '@locks/core';
import type { FaultLab } from './fault-lab.ts';

/** How a store behaves where that differs. Times are in milliseconds, with what a busy machine may add. */
export interface StoreTraits {
  /** In titles and figures. */
  readonly name: string;
  /** Whether holds and queues are there again after the server was killed and restarted. */
  readonly keepsHolds: boolean;
  /** Whether a hold ends with the connection that it was acquired on. */
  readonly endsWithConnection?: boolean;
  /** Whether a wait during which the server falls silent always ends with `LOCK_BACKEND`, and never with `LOCK_TIMEOUT`. */
  readonly noticesSilence: boolean;
  /** Why a hold is lost whose client heard nothing of the store for too long. */
  readonly lossReason: 'unconfirmed' | 'session-lost';
  /** The longest time from the last contact until a brief hold is reported lost. */
  readonly reportedMs: number;
  /** The longest time from the last contact of a brief holder, or from its death, until the next one holds. */
  readonly freedMs: number;
  /** The longest time that a waiter which does not answer keeps those behind it waiting. */
  readonly passedOverMs: number;
  /** How late a call may end after its `waitMs`. */
  readonly slackMs: number;
}

/** What the fault scenarios need of a store. */
export interface FaultStore<Options extends object = LockOptions> extends StoreTraits {
  readonly openLab: () => FaultLab<Options>;
  /** Locks whose holds end soon after their client was last heard of. */
  readonly brief: Options;
  /** Locks whose holds outlive every scenario. */
  readonly lasting: Options;
  /** What makes a client with one connection; absent where a client never has more. */
  readonly poolOfOne?: Options;
}
