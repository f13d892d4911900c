import type { AcquireOptions } from '@locks/core';

/** What a lease looks like from another process; times are of the machine's monotonic clock, in milliseconds. */
export interface WorkerLease {
  readonly id: number;
  readonly acquisitionId: string;
  readonly token: string;
}

export interface WorkerLeaseState {
  readonly validForMs: number;
  readonly aborted: boolean;
  readonly reason: string | undefined;
}

/** Which lock of a name. */
export type LockKind = 'exclusive' | 'shared' | { readonly permits: number; readonly weight: number };

export interface LoadOptions {
  readonly resources: readonly string[];
  /** Which locks of a resource, in turn. @defaultValue exclusive ones */
  readonly kinds?: Readonly<Record<string, readonly LockKind[]>>;
  /** How many loops; each takes the resources in turn. */
  readonly loops: number;
  readonly holdMs: number;
  readonly waitMs: number;
}

/** One critical section of a load. It ended when the work ended or, if earlier, when the loss was reported. */
export interface LoadSection {
  readonly resource: string;
  readonly kind: LockKind;
  readonly who: string;
  readonly token: string;
  readonly enteredAt: number;
  readonly endedAt: number;
  readonly lost: string | undefined;
}

export interface LoadResult {
  readonly sections: readonly LoadSection[];
  /** Codes and messages of acquires and releases that failed. */
  readonly failures: readonly { readonly at: number; readonly what: string }[];
  readonly unhandled: readonly string[];
}

export interface WorkerCommands {
  acquire(
    name: string,
    options?: Omit<AcquireOptions, 'signal' | 'within'>,
    kind?: LockKind,
  ): Promise<WorkerLease>;
  release(id: number): Promise<void>;
  state(id: number): Promise<WorkerLeaseState>;
  /** Resolves with the reason when the lease is reported lost. */
  loss(id: number): Promise<string | undefined>;
  /** Writes `key` under the token of a lease, as a holder that did not notice that time went by: checks nothing before. */
  write(id: number, key: string, value: string, how: 'fenced' | 'plain'): Promise<void>;
  /** Closes the locks, and then the clients; the process ends when nothing keeps it alive any more. */
  close(): Promise<{ readonly outcome: string; readonly tookMs: number }>;
  startLoad(options: LoadOptions): Promise<void>;
  stopLoad(): Promise<LoadResult>;
}
