// One file: the interface of one class of another library, and what each of its methods stands for here.
import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type BaseLease,
  createLocks,
  isLockError,
  LockError,
  type LockManager,
  type MultiLease,
} from '@locks/core';
import { type LockBackend, invalidArgument, mustBe } from '@locks/core/backend';
import { quorumBackend } from '@locks/quorum';
import { redisBackend } from '@locks/redis-ioredis';
import { ExecutionError } from './errors.ts';
import type { ExecutionResult, ExecutionStats, RedlockClient } from './execution-stats.ts';
import { Lock } from './lock.ts';
import {
  readCallSettings,
  readSettings,
  type RedlockCallSettings,
  type ResolvedCallSettings,
  type Settings,
} from './settings.ts';
import { ClientVotes, voting, votingBackend } from './votes.ts';

/** The signal of `using`: `error` is there once it has aborted. */
export type RedlockAbortSignal = AbortSignal & {
  /** The reason of the abort; absent until then. */
  readonly error?: Error | undefined;
};

/** The function that `using` runs under its lock. */
export type RedlockRoutine<T> = (signal: RedlockAbortSignal) => T | Promise<T>;

// setup: import { Redlock } from '@locks/redlock-compat'; import { Redis } from 'ioredis'; declare function transfer(): Promise<void>;
/**
 * The interface of redlock 5 on the locks of `@locks/core`: with one client on a Redis, with several on a quorum of them. Emits
 * `error` for every failure of a client, also where the operation succeeds.
 *
 * @example
 * ```ts
 * const redlock = new Redlock([new Redis()], { retryCount: 25 });
 * await redlock.using(['account:1', 'account:2'], 5_000, async (signal) => {
 *   await transfer();
 *   if (signal.aborted) throw signal.error;
 * });
 * ```
 */
export class Redlock extends EventEmitter {
  /** The clients, each once. */
  readonly clients: ReadonlySet<RedlockClient>;
  /** The settings, with their defaults. */
  readonly settings: Settings;
  readonly #locks: LockManager<BaseLease>;

  /**
   * @param clients - clients of independent Redis servers: one, or an odd number
   * @throws LockError `LOCK_INVALID_ARGUMENT`; `LOCK_UNSUPPORTED` for scripts of your own, the third argument of redlock
   */
  constructor(clients: Iterable<RedlockClient>, settings?: Partial<Settings>, ...scripts: readonly never[]) {
    super();
    // Node throws an emitted `error` for which there is no listener.
    this.on('error', () => {});
    if (typeof (clients as Partial<Iterable<unknown>> | undefined)?.[Symbol.iterator] !== 'function') {
      throw mustBe('new Redlock(): the clients', 'given in an array', clients);
    }
    const given = [...clients];
    this.clients = new Set(given);
    const { size } = this.clients;
    // With fewer servers than the application counts on, the failure of one could be that of all.
    if (size < given.length)
      throw invalidArgument('new Redlock() was given one client twice: its servers must fail independently.');
    // An even number gains nothing: one client more must agree than of the odd number below it, and no more may fail.
    if (size % 2 === 0) throw mustBe('new Redlock()', 'given one client, or an odd number of them', size);
    this.settings = readSettings(settings);
    if (scripts.some((script) => script !== undefined)) {
      throw new LockError('LOCK_UNSUPPORTED', 'new Redlock(): scripts of your own cannot be used here.');
    }
    const report = (error: Error): void => void this.emit('error', error);
    const nodes = [...this.clients].map((client) => votingBackend(backendOf(client), client, report));
    const [only] = nodes;
    const { driftFactor } = this.settings;
    this.#locks = createLocks<LockBackend['capabilities']>(
      nodes.length === 1 ? (only as LockBackend) : quorumBackend(nodes, { driftFactor }),
    );
  }

  /**
   * Acquires a lock on all of the resources, or on none.
   *
   * @param resources - the names; on a Redis Cluster they may lie in different slots
   * @param duration - the time in milliseconds for which the lock lasts unless it is extended: a whole number
   * @throws ExecutionError when the resources were locked by others until the end, or too few clients answered; LockError `LOCK_INVALID_ARGUMENT`,
   * `LOCK_CLOSED`; the reason of `settings.signal`
   */
  acquire(resources: readonly string[], duration: number, settings?: RedlockCallSettings): Promise<Lock> {
    return this.#acquire('acquire()', resources, duration, settings, 'manual');
  }

  /**
   * Releases a lock. A second release does nothing.
   *
   * @throws ExecutionError at once: the lock was over before, or too few clients answered, and it ends by itself
   */
  async release(lock: Lock, settings?: RedlockCallSettings): Promise<ExecutionResult> {
    this.#check('release()', lock, settings);
    const { attempts } = await this.#execute(() => lock.lease.release());
    return { attempts };
  }

  /**
   * Moves the end of a lock to `duration` milliseconds from now.
   *
   * @returns the same lock: the old variable has the new end too
   * @throws ExecutionError when the lock is over; when too few clients answered, after the last try
   */
  async extend(lock: Lock, duration: number, settings?: RedlockCallSettings): Promise<Lock> {
    const resolved = this.#check('extend()', lock, settings);
    checkDuration('extend()', duration);
    await this.#retry(resolved, async () => {
      if (lock.expiration === 0)
        throw new ExecutionError('Cannot extend a lock that is over.', [], causeOf(lock));
      await this.#execute(() => lock.lease.renew(duration));
    });
    return lock;
  }

  /**
   * Acquires, works, and releases. The lock is extended every third of its duration until the routine ends.
   *
   * @param routine - gets a signal that aborts, with `signal.error`, when the lock is lost
   * @returns the result of the routine
   * @throws what the routine throws; ExecutionError as `acquire`, and when the lock was lost before the routine ended
   */
  using<T>(resources: readonly string[], duration: number, routine: RedlockRoutine<T>): Promise<T>;
  /** Does the same, with settings for this call. */
  using<T>(
    resources: readonly string[],
    duration: number,
    settings: RedlockCallSettings,
    routine: RedlockRoutine<T>,
  ): Promise<T>;
  async using<T>(
    resources: readonly string[],
    duration: number,
    second: RedlockCallSettings | RedlockRoutine<T>,
    third?: RedlockRoutine<T>,
  ): Promise<T> {
    const [settings, routine] = typeof second === 'function' ? [undefined, second] : [second, third];
    if (typeof routine !== 'function') throw mustBe('using(): the routine', 'a function', routine);
    const lock = await this.#acquire('using()', resources, duration, settings, 'auto');
    let value: T;
    try {
      value = await routine(signalOf(lock));
    } catch (error) {
      // The release may find the lock over: the error of the routine counts.
      await lock.lease.release().catch(() => {});
      throw error;
    }
    try {
      await lock.lease.release();
    } catch (error) {
      if (isLockError(error, 'LOCK_LOST')) throw executionError(error, []);
      // The work is done, and the lock ends by itself.
      this.emit('error', error);
    }
    return value;
  }

  /**
   * Ends waits, releases held locks, and calls `quit()` of all clients.
   * @throws LockError `LOCK_BACKEND` where a backend did not close; what `quit()` of a client rejects with
   */
  async quit(): Promise<void> {
    await this.#locks.close();
    await Promise.all(
      [...this.clients].map(async (client) => 'quit' in client && (client as Quittable).quit()),
    );
  }

  async #acquire(
    caller: string,
    resources: readonly string[],
    duration: number,
    given: RedlockCallSettings | undefined,
    renewal: 'auto' | 'manual',
  ): Promise<Lock> {
    const settings = readCallSettings(caller, given, this.settings);
    checkDuration(caller, duration);
    if (!Array.isArray(resources)) throw mustBe(`${caller}: the resources`, 'an array of names', resources);
    const options = { ttlMs: duration, renewal };
    const names = [...new Set(resources)];
    const set = this.#locks.all(names.map((name) => this.#locks.lock(name, options)));
    const { signal, retryCount, retryDelay } = settings;
    const isOne = names.length === 1;
    const take = async (): Promise<MultiLease<BaseLease>> => {
      if (!isOne) return (await set.tryAcquire({ signal })) ?? Promise.reject(lockedElsewhere(names));
      return set.acquire({
        signal,
        waitMs: retryCount < 0 ? Number.POSITIVE_INFINITY : retryCount * retryDelay,
      });
    };
    // One resource is waited for in the queue of the store; several are tried together, again and again.
    const tries = isOne ? { ...settings, retryCount: 0 } : settings;
    const attempts: Promise<ExecutionStats>[] = [];
    const lease = await this.#retry(tries, async () => {
      const { value, attempts: own } = await this.#execute(take, attempts);
      attempts.push(...own);
      return value;
    });
    return new Lock(this, [...resources], lease, attempts);
  }

  /** Runs one attempt and counts its votes; the error of a failure has the votes of the earlier attempts too. */
  async #execute<T>(
    attempt: () => Promise<T>,
    earlier: Promise<ExecutionStats>[] = [],
  ): Promise<{ readonly value: T; readonly attempts: Promise<ExecutionStats>[] }> {
    const votes = new ClientVotes(this.clients.size);
    const stats = Promise.resolve(votes);
    try {
      return { value: await voting(votes, attempt), attempts: [stats] };
    } catch (error) {
      earlier.push(stats);
      throw executionError(error, [...earlier]);
    }
  }

  /** Repeats an attempt that failed with a retryable `ExecutionError`. */
  async #retry<T>(settings: ResolvedCallSettings, attempt: () => Promise<T>): Promise<T> {
    const { retryCount, retryDelay, retryJitter, signal } = settings;
    for (let left = retryCount < 0 ? Number.POSITIVE_INFINITY : retryCount; ; left -= 1) {
      try {
        return await attempt();
      } catch (error) {
        if (left <= 0 || !mayPass(error)) throw error;
      }
      await delay(Math.max(0, retryDelay + (Math.random() * 2 - 1) * retryJitter), undefined, {
        signal,
      }).catch((error: unknown) => {
        throw signal?.aborted ? signal.reason : error;
      });
    }
  }

  #check(caller: string, lock: unknown, settings: RedlockCallSettings | undefined): ResolvedCallSettings {
    const resolved = readCallSettings(caller, settings, this.settings);
    if (lock instanceof Lock && lock.redlock === this) return resolved;
    throw mustBe(`${caller}: the lock`, 'what acquire() of this Redlock gave', lock);
  }
}

interface Quittable {
  quit(): Promise<unknown>;
}

function backendOf(client: RedlockClient): LockBackend {
  const isBackend = (client as Partial<LockBackend> | null | undefined)?.spec !== undefined;
  return isBackend ? (client as LockBackend) : redisBackend(client as never);
}

function checkDuration(caller: string, duration: unknown): void {
  if (Number.isInteger(duration) && Number(duration) > 0) return;
  throw mustBe(`${caller}: the duration`, 'a whole number of milliseconds above 0', duration);
}

function lockedElsewhere(names: readonly string[]): LockError {
  const quoted = names.map((name) => JSON.stringify(name)).join(', ');
  return new LockError('LOCK_TIMEOUT', `At least one of ${quoted} is locked by somebody else.`);
}

/** The advice of core how locks nest, which this interface cannot express. */
const ADVICE_OF_CORE = / Only code that .* passes \{ within: lease \}\./;

/**
 * The codes of store failures and of locks of others, without those of bad arguments, a closed manager, or the caller's own
 * abort.
 */
const FAILURES = new Set(
  'LOCK_TIMEOUT LOCK_CONTENDED LOCK_BACKEND LOCK_LOST LOCK_NOT_HELD LOCK_CONFLICT'.split(' '),
);

function executionError(error: unknown, attempts: readonly Promise<ExecutionStats>[]): unknown {
  if (!isLockError(error) || !FAILURES.has(error.code)) return error;
  const message = error.message.replace(ADVICE_OF_CORE, '');
  return new ExecutionError(message, attempts, { cause: new LockError(error.code, message, error) });
}

/** Tells whether another try may succeed: a lock that is over stays over. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof ExecutionError) || !isLockError(error.cause)) return false;
  return ['LOCK_TIMEOUT', 'LOCK_CONTENDED', 'LOCK_BACKEND'].includes(error.cause.code);
}

/** The reason why a lock is over. */
function causeOf({ lease }: Lock): ErrorOptions {
  try {
    lease.assertValid();
  } catch (cause) {
    return { cause };
  }
  return {};
}

/** A signal whose `aborted` is true as soon as it is read after the end of the lock, also before any timer ran. */
function signalOf({ lease }: Lock): RedlockAbortSignal {
  const controller = new AbortController();
  let error: Error | undefined;
  const abort = (loss: unknown): void => {
    if (error !== undefined) return;
    error = executionError(loss, []) as Error;
    controller.abort(error);
  };
  const look = (): void => {
    // Reading the signal of a lease compares its end with the clock.
    for (const { signal } of lease.leases) if (signal.aborted) abort(signal.reason);
  };
  const { signal } = lease;
  signal.addEventListener('abort', () => abort(signal.reason), { once: true });
  const isAborted = (): boolean => (look(), error !== undefined);
  const errorNow = (): Error | undefined => (look(), error);
  return Object.defineProperties(controller.signal, {
    aborted: { get: isAborted },
    error: { get: errorNow },
  });
}
