import type { LockManagerSnapshot, WebLockOptions, WebLocksOptions } from '@locks/web-locks';

/** How a process reaches the store that all share, as plain data for child processes. */
export interface ClientSetup {
  /** The module of a conformance harness, which makes the backend. */
  readonly harness: string;
  /** The environment that the harness reads. */
  readonly env: Readonly<Record<string, string>>;
  readonly options?: WebLocksOptions;
}

/** How a request ended. Times are of the machine's monotonic clock, in milliseconds. */
export interface RequestOutcome {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
  readonly at: number;
}

/** The commands of a process with a Web Locks client of its own. Each request has a key. */
export interface WebLocksCommands {
  clientId(): Promise<string>;
  /** Makes a request without waiting for it. Its callback holds the lock until `release`. */
  request(key: string, name: string, options?: Omit<WebLockOptions, 'signal'>): Promise<void>;
  /** Resolves when the callback was called: the mode of the lock, or `null`, and when. */
  granted(key: string): Promise<{ readonly mode: string | null; readonly at: number }>;
  release(key: string, value?: unknown): Promise<void>;
  /** Makes a request, aborts it in the same turn, and gives the outcome and whether the callback was called. */
  abortAtOnce(name: string): Promise<RequestOutcome & { readonly called: boolean }>;
  /** Aborts a request; its reason is `aborted`. */
  abort(key: string): Promise<void>;
  outcome(key: string): Promise<RequestOutcome>;
  query(): Promise<LockManagerSnapshot>;
  /** Adds one to the number in a file, `times` times, each time reading, pausing and writing under the lock. */
  count(name: string, file: string, times: number): Promise<void>;
}
