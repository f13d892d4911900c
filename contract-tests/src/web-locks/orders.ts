import type { LockManagerSnapshot, WebLockOptions, WebLocksOptions } from '@locks/web-locks';

/** What a process needs to know of the store that all share. Plain data: it goes to child processes as JSON. */
export interface ClientSetup {
  /** The module of a conformance harness, which makes the backend. */
  readonly harness: string;
  /** What that harness reads from the environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly options?: WebLocksOptions;
}

/** How a request ended. Times are of the machine's monotonic clock, in milliseconds. */
export interface Outcome {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
  readonly at: number;
}

/** What a process does; requests are known by a key. */
export interface Orders {
  clientId(): Promise<string>;
  /** Requests, and does not wait: the callback holds until `release`. */
  request(key: string, name: string, options?: Omit<WebLockOptions, 'signal'>): Promise<void>;
  /** Resolves when the callback was called: the mode of the lock, or `null`, and when. */
  granted(key: string): Promise<{ readonly mode: string | null; readonly at: number }>;
  release(key: string, value?: unknown): Promise<void>;
  /** Requests, aborts in the same turn, and gives the outcome and whether the callback was called. */
  abortAtOnce(name: string): Promise<Outcome & { readonly called: boolean }>;
  /** Aborts a request; its reason is `aborted`. */
  abort(key: string): Promise<void>;
  outcome(key: string): Promise<Outcome>;
  query(): Promise<LockManagerSnapshot>;
  /** Adds one to the number in a file, `times` times, each time reading, pausing and writing under the lock. */
  count(name: string, file: string, times: number): Promise<void>;
}

export interface Order {
  readonly order: number;
  readonly name: keyof Orders;
  readonly args: readonly unknown[];
}

export type Answer =
  | 'ready'
  | { readonly order: number; readonly value: unknown }
  | { readonly order: number; readonly error: string };

/** Milliseconds on the clock that all processes of a machine share. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
