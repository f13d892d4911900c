import {
  type BackendCapabilities,
  type BaseLease,
  isLockError,
  type Lease,
  type Lock,
  LockError,
  type LockManager,
} from '@locks/core';
import {
  abortSignal,
  invalidArgument,
  MAX_TIMEOUT_MS,
  matching,
  milliseconds,
  mustBe,
  optional,
  type OptionTable,
  readOptions,
  type ResultStore,
  wholeNumber,
} from '@locks/core/backend';
import { checkCall } from './check-call.ts';
import { jsonDifference } from './json-difference.ts';
import { GET_AND_SET, isTextStore } from './slot-store.ts';
import { releaseQuietly } from './release-quietly.ts';
import { runSignal } from './run-signal.ts';
import { SharedRun } from './shared-run.ts';

/** Options of {@link coalesce}. All times are milliseconds. */
export interface CoalesceOptions {
  /**
   * The store in which a result is shared with other processes.
   * @defaultValue none: callers of this process share a result, and each process runs the work by itself, one after another
   */
  readonly store?: ResultStore | undefined;
  /**
   * How long the store keeps a result: callers that come within this time get it, whether they came while the work ran or later. A whole
   * number from 1 to 2³¹ − 1. Only with `store`.
   * @defaultValue 1 000
   */
  readonly shareForMs?: number | undefined;
  /** The ttl of the lease, which is renewed while the work runs. @defaultValue that of the manager */
  readonly ttlMs?: number | undefined;
  /**
   * The longest wait for the lock while another process works; then `LOCK_TIMEOUT`. Callers that join others of their process wait with
   * them. `Infinity` waits until all have left.
   * @defaultValue that of the manager
   */
  readonly waitMs?: number | undefined;
  /** Ends the wait of this caller. The work goes on as long as another caller of this process waits for it. */
  readonly signal?: AbortSignal | undefined;
}

/** The argument of the work of {@link coalesce}. */
export interface CoalesceRun {
  /** Aborts when the lock is lost, and when no caller of this process waits any more. */
  readonly signal: AbortSignal;
  /** The token of the lock: send it with what the work writes. `undefined` on a backend without tokens. */
  readonly fencingToken: bigint | undefined;
}

const SHARE_FOR_MS = 1_000;
const TABLE = {
  store: optional(matching(GET_AND_SET, isTextStore)),
  shareForMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  // Core reads both again, with the limits of the backend.
  ttlMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  signal: optional(abortSignal),
} satisfies OptionTable<CoalesceOptions>;

/** The runs that callers of this process wait for, by manager and name. */
const runs = new WeakMap<object, Map<string, SharedRun<unknown>>>();

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { redisBackend, redisResults } from '@locks/redis-ioredis'; import { Redis } from 'ioredis';
// setup: const redis = new Redis(); declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * Runs the work once for all callers that come while it runs, and gives each of them its result: within a process as `singleflight` of
 * Go does, with a `store` over processes too. The store keeps a result for `shareForMs`: a cache whose entry one process builds.
 *
 * With a `store` the result travels as JSON. One that JSON would change is refused, and nothing is stored of it: a Map, a Set, a Date, bytes, an
 * object of a class, a bigint, NaN, Infinity, `undefined` in an array. Callers that come together in one process get the same object: do not change it. An error goes to the callers of this process; another process then runs the work itself.
 *
 * @param name - the name of the lock, and the key of the result in the store
 * @param work - that of the first of the callers that come together in one process is run. It must not wait for its own name
 * @throws LockError `LOCK_TIMEOUT` after `waitMs`; `LOCK_UNSUPPORTED` for a `store` on a backend without fencing tokens;
 * `LOCK_INVALID_ARGUMENT`, also for a result that JSON would change, which is the `result` of that error; the codes of `acquire`. What the work and the store throw, and the
 * reason of `signal`, as they are
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(redis));
 * const options = { store: redisResults(redis), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export async function coalesce<T>(
  locks: Pick<LockManager<BaseLease>, 'lock' | 'capabilities'>,
  name: string,
  work: (run: CoalesceRun) => T | Promise<T>,
  options?: CoalesceOptions,
): Promise<T> {
  checkCall('coalesce', locks, name, work);
  const read = readOptions('coalesce()', options, TABLE);
  const { store, shareForMs, ttlMs, waitMs, signal } = read;
  if (shareForMs !== undefined && store === undefined) {
    throw invalidArgument('coalesce(): shareForMs goes with a store, which keeps the result for so long.');
  }
  // A bad name and bad times are refused by every call, also where it would join a run.
  const lock = locks.lock(name, { ttlMs, waitMs });
  if (store !== undefined) assertTokens(locks.capabilities, name);
  signal?.throwIfAborted();

  const ofManager = runs.get(locks) ?? new Map<string, SharedRun<unknown>>();
  runs.set(locks, ofManager);
  const present = ofManager.get(name) as SharedRun<T> | undefined;
  if (present !== undefined) return present.join(signal);
  const results = store && new Results<T>(store, name, shareForMs ?? SHARE_FOR_MS);
  const started: SharedRun<T> = new SharedRun(
    (abandoned) => buildOnce(lock, work, results, abandoned),
    // Who comes after the last caller has left starts anew.
    () => ofManager.get(name) === started && ofManager.delete(name),
  );
  ofManager.set(name, started);
  return started.join(signal);
}

/** Gives the result that the store has, or runs the work under the lock. */
async function buildOnce<T>(
  lock: Lock<BaseLease>,
  work: (run: CoalesceRun) => T | Promise<T>,
  results: Results<T> | undefined,
  abandoned: AbortSignal,
): Promise<T> {
  const kept = await results?.read();
  if (kept !== undefined) return kept.value;
  const lease: Lease = await lock.acquire({ signal: abandoned });
  const run = runSignal([lease.signal, abandoned]);
  try {
    // Another process may have worked while this one waited.
    const built = await results?.read();
    if (built !== undefined) return built.value;
    // The store may have taken longer than the lease lasts.
    lease.assertValid();
    const { fencingToken } = lease;
    const value = await work({ signal: run.signal, fencingToken });
    return results === undefined ? value : await results.write(value, fencingToken as bigint);
  } finally {
    run.end();
    await releaseQuietly(lease);
  }
}

/** The result of one key in a store. */
class Results<T> {
  readonly #store: ResultStore;
  readonly #key: string;
  readonly #ttlMs: number;

  constructor(store: ResultStore, key: string, ttlMs: number) {
    this.#store = store;
    this.#key = key;
    this.#ttlMs = ttlMs;
  }

  async read(): Promise<{ readonly value: T } | undefined> {
    const text: unknown = await this.#store.get(this.#key);
    if (text === undefined || text === null) return undefined;
    if (typeof text !== 'string') {
      throw mustBe(`coalesce(): what store.get gives of ${this.#key}`, 'a string, undefined or null', text);
    }
    const { version, value } = parse(text, this.#key) as { readonly version: unknown; readonly value: T };
    // Another version of this package wrote it: this process builds its own.
    return version === VERSION ? { value } : undefined;
  }

  /** Returns what other processes will read. */
  async write(value: T, token: bigint): Promise<T> {
    const text = toText(value, this.#key);
    try {
      await this.#store.set(this.#key, text, token, this.#ttlMs);
    } catch (error) {
      // The lock was lost, and a newer result is there already; the callers of this process get that of their own run.
      if (!isLockError(error, 'LOCK_LOST')) throw error;
    }
    return (JSON.parse(text) as { readonly value: T }).value;
  }
}

const VERSION = 1;

function toText(value: unknown, name: string): string {
  const difference = jsonDifference(value);
  if (difference === undefined) return JSON.stringify({ version: VERSION, value });
  const error = invalidArgument(
    `coalesce(): the store was given nothing of the result of ${name}, which JSON would change: ${difference}. Return plain data, for example ` +
      '[...map] or date.toISOString(), and convert it where coalesce() gives it; or do without the store. The error has the result.',
  );
  // The work was done: its caller need not do it again.
  throw Object.defineProperty(error, 'result', { value, enumerable: false });
}

function parse(text: string, name: string): object {
  try {
    const entry: unknown = JSON.parse(text);
    if (typeof entry === 'object' && entry !== null && 'version' in entry) return entry;
  } catch {
    // The same as any other text that was not written by `write`.
  }
  throw invalidArgument(`coalesce(): what the store has under ${name} was not written by coalesce().`);
}

function assertTokens({ fencing }: BackendCapabilities, name: string): void {
  if (fencing !== 'none') return;
  const says =
    'coalesce() with a store needs a backend with fencing tokens: without the store it shares within a process.';
  throw new LockError('LOCK_UNSUPPORTED', says, { lockName: name });
}
