import type { AcquireOptions } from '../../src/options.ts';
import type { CriticalSection } from '../critical-section.ts';

/** A lease in a child process, as its parent sees it. */
export interface RemoteLease {
  readonly id: number;
  readonly acquisitionId: string;
  readonly token?: string | undefined;
  readonly acquiredAt: number;
}

/** The properties of a lease in a child process, read in one synchronous step. */
export interface LeaseReading {
  readonly validForMs: number;
  readonly holdCount: number;
  /** The code of the error that `assertValid()` threw. */
  readonly assertion?: string | undefined;
  readonly aborted: boolean;
  readonly reason?: string | undefined;
}

/** The options of an acquire that can be sent to another process. */
export type RemoteOptions = Omit<AcquireOptions, 'signal' | 'within'>;

/** The kind of lock that a child takes. */
export type RemoteKind = 'exclusive' | 'shared' | { readonly permits: number; readonly weight: number };

export interface ContendOptions extends RemoteOptions {
  /** How many on a store that is fast enough. */
  readonly rounds: number;
  /** The kinds of the rounds, repeated in this order. @defaultValue exclusive locks */
  readonly kinds?: readonly RemoteKind[];
  /** How long each critical section lasts, in milliseconds; 0 is one iteration of the event loop. */
  readonly holdMs?: number;
}

export interface OpenOptions {
  /** How long core waits for the answer to a release. @defaultValue as the backend says */
  readonly releaseBudgetMs?: number;
  /** For how long a renewal thread renews the leases of a blocked event loop. @defaultValue there is no thread */
  readonly maxBlockedMs?: number;
  /** Whether the thread ends by itself at its first renewal, unsent. @defaultValue false */
  readonly endsAtRenewal?: boolean;
}

/** The commands that a child process understands. Times are on the monotonic clock of the machine. */
export interface Commands {
  acquire(name: string, options?: RemoteOptions, kind?: RemoteKind): Promise<RemoteLease>;
  tryAcquire(name: string, options?: RemoteOptions): Promise<RemoteLease | undefined>;
  release(id: number): Promise<void>;
  renew(id: number, ttlMs?: number): Promise<void>;
  read(id: number): Promise<LeaseReading>;
  /** Waits until the stored signal of a lease aborts; gives when it did, and why. */
  untilAborted(id: number): Promise<{ readonly at: number; readonly reason: string }>;
  /** Blocks the event loop for `ms`, and reads the lease in the same synchronous step, before any timer runs. */
  readAfterBlock(id: number, ms: number): Promise<LeaseReading>;
  /** Blocks the event loop for `ms`; gives whether a signal stored before has aborted in the next timer phase. */
  abortedAfterBlock(id: number, ms: number): Promise<boolean>;
  /** Blocks the event loop for `ms`; gives whether a signal stored before has aborted once the process holds again. */
  abortedBeforeNext(id: number, ms: number): Promise<boolean>;
  /** Acquires, and blocks the event loop for `ms` in the same synchronous step. */
  acquireAndBlock(name: string, options: RemoteOptions, ms: number): Promise<RemoteLease>;
  /** Releases, and blocks the event loop for `ms`, in the same synchronous step or in the next iteration of the event loop. */
  releaseAndBlock(id: number, ms: number, isUnderWay: boolean): Promise<void>;
  /** Sets the process's wall clock to `offsetMs` ahead of the machine's. */
  setWallClock(offsetMs: number): Promise<void>;
  /** Takes and releases the lock `rounds` times, or fewer on a slow store. */
  contend(name: string, who: string, options: ContendOptions): Promise<readonly CriticalSection[]>;
  /** How many timers keep the process alive. */
  timers(): Promise<number>;
  /** What keeps the process alive, in words. */
  keptOpen(): Promise<string>;
  /** Closes the manager, and stops waiting for commands: whatever keeps the process alive from now on is a leak. */
  closeAndLinger(): Promise<void>;
  /** Makes a manager on a backend of its own, for the following commands. */
  open(options?: OpenOptions): Promise<void>;
  /** Resolves when the renewal thread has ended by itself. */
  untilThreadStopped(): Promise<void>;
  /** Closes the manager and forgets its leases; rejects if there was an unhandled error since the process started. */
  close(): Promise<void>;
}
