import type { AcquireOptions } from '../../options.ts';
import type { Stay } from '../history.ts';

/** What a lease in a child process looks like from outside. */
export interface RemoteLease {
  readonly id: number;
  readonly acquisitionId: string;
  readonly token?: string | undefined;
  readonly acquiredAt: number;
}

/** What a child reads from one of its leases, in one synchronous go. */
export interface Reading {
  readonly validForMs: number;
  readonly holdCount: number;
  /** The code that `assertValid()` threw with. */
  readonly assertion?: string | undefined;
  readonly aborted: boolean;
  readonly reason?: string | undefined;
}

/** Options that can be sent. */
export type RemoteOptions = Omit<AcquireOptions, 'signal' | 'within'>;

/** Which lock on a resource. */
export type RemoteKind = 'exclusive' | 'shared' | { readonly permits: number; readonly weight: number };

export interface ContendOptions extends RemoteOptions {
  readonly rounds: number;
  /** One for each round, again and again. @defaultValue exclusive ones */
  readonly kinds?: readonly RemoteKind[];
  /** How long each stay lasts, in milliseconds; 0: one turn of the event loop. */
  readonly stayMs?: number;
}

/** What a child can be told. Times are on the machine's monotonic clock. */
export interface Commands {
  acquire(name: string, options?: RemoteOptions, kind?: RemoteKind): Promise<RemoteLease>;
  tryAcquire(name: string, options?: RemoteOptions): Promise<RemoteLease | undefined>;
  release(id: number): Promise<void>;
  renew(id: number, ttlMs?: number): Promise<void>;
  read(id: number): Promise<Reading>;
  /** When the stored signal of a lease aborted, and why; waits for it. */
  untilAborted(id: number): Promise<{ readonly at: number; readonly reason: string }>;
  /** Blocks the event loop for `ms`, and reads the lease in the same synchronous go, before any timer runs. */
  readAfterBlock(id: number, ms: number): Promise<Reading>;
  /** Blocks the event loop for `ms`; whether a signal stored before it has aborted in the timer phase that follows. */
  abortedAfterBlock(id: number, ms: number): Promise<boolean>;
  /** Blocks the event loop for `ms`; whether a signal stored before it has aborted once another one here holds the resource. */
  abortedBeforeNext(id: number, ms: number): Promise<boolean>;
  /** Sets the process's wall clock to `offsetMs` ahead of the machine's. */
  setWallClock(offsetMs: number): Promise<void>;
  /** Takes the lock again and again. */
  contend(name: string, who: string, options: ContendOptions): Promise<readonly Stay[]>;
  /** How many timers keep the process alive. */
  timers(): Promise<number>;
  /** Closes the manager, and no longer waits for orders: what keeps the process alive from now on was left behind. */
  closeAndLinger(): Promise<void>;
  /** Makes a manager on a backend of its own, for the orders that follow. */
  open(): Promise<void>;
  /** Closes the manager and forgets its leases; rejects if an error was handled by no one since the process started. */
  close(): Promise<void>;
}

export type CommandName = keyof Commands;

export interface Order {
  readonly order: number;
  readonly command: CommandName;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly order: number; readonly value: unknown }
  | {
      readonly order: number;
      readonly error: { readonly message: string; readonly code?: string; readonly reason?: string };
    };
