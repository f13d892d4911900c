import { AcquireLoop } from './acquire/acquire-loop.ts';
import { enterScope } from './acquire/re-enter.ts';
import { timeoutError } from './acquire/timeout-error.ts';
import type { LockMode, ResourceState } from './backend/types.ts';
import { CLOSED } from './call/call-deadlines.ts';
import { mustBe } from './errors.ts';
import { acquireTracing, type LockTrace, runTracing, traced } from './events.ts';
import type { BaseLease, Lease } from './lease.ts';
import { releaseIfAborted, LeaseHandle } from './lease/lease-handle.ts';
import type { ManagerCore } from './manager-core.ts';
import {
  ACQUIRE_TABLE,
  type AcquireOptions,
  type ResolvedOptions,
  resolveOptions,
  TRY_TABLE,
  type TryAcquireOptions,
} from './options.ts';
import { holdAndWork } from './run.ts';
import { enclosingScope } from './scope/context.ts';

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function deduct(token: bigint): Promise<void>;
/**
 * The lock on one name. Creating it sends nothing. Its methods, and those of a lease, need their object: the types refuse a call of
 * what `const { run } = lock` gives. Functions of a manager may be taken from it.
 *
 * @example
 * ```ts
 * await locks.lock('sku:42').run(async (lease) => {
 *   await deduct(lease.fencingToken);
 * });
 * ```
 */
export interface Lock<L extends BaseLease = Lease> {
  readonly name: string;
  /** Exclusive, shared, or with permits. */
  readonly mode: LockMode;
  /**
   * Waits for the lock, for up to `waitMs`. The caller releases the lease; prefer `run`.
   * @throws LockError `LOCK_TIMEOUT` after `waitMs`, `LOCK_CONTENDED` with `waitMs` 0, `LOCK_QUEUE_FULL` with `maxWaiters`, `LOCK_BACKEND`, `LOCK_CONFLICT`, `LOCK_CLOSED`, `LOCK_UNSUPPORTED`,
   * `LOCK_INVALID_ARGUMENT`, with `within` `LOCK_REENTRANT` and `LOCK_NOT_HELD`; the reason of `signal` when it aborts
   */
  acquire(this: object, options?: AcquireOptions): Promise<L>;
  /**
   * Makes one attempt, and gives `undefined` when the lock is busy. Never queues, never overtakes waiters: to wait, call
   * `acquire({ waitMs })`. `answerMs` of the manager limits the store's answer.
   * @throws LockError as `acquire`, but no `LOCK_TIMEOUT` and no `LOCK_CONTENDED`
   */
  tryAcquire(this: object, options?: TryAcquireOptions): Promise<L | undefined>;
  /**
   * Acquires, runs `work`, releases in every case, and gives the value of `work`. While `work` runs, the option `signal` aborts the
   * `signal` of its lease with its own reason; a loss does so with a `LOCK_LOST` error.
   * @throws LockError as `acquire`; the error of `work`; `LOCK_LOST` if the lease was lost before `work` ended, with its value as
   * `result`
   */
  run<T>(this: object, work: (lease: L) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
  /**
   * Shows who holds the lock and who waits.
   * @throws LockError `LOCK_BACKEND`, `LOCK_CLOSED`
   */
  inspect(this: object): Promise<ResourceState>;
}

/**
 * Marks a lock that holds nothing yet, so that `await locks.lock(name)` does not compile. An async function that returns a lock
 * declares it as plain `Lock`.
 */
export interface HoldsNothingYet {
  /** Absent: a lock is no promise. */
  then?(this: 'a lock holds nothing yet: await lock.acquire(), or lock.run(work)'): never;
}

/** The manager of a lock, and the lock's options: `all` needs them to take several locks in one step. */
export interface LockInternals {
  readonly core: ManagerCore;
  readonly options: ResolvedOptions;
}

/** The `Lock` of every mode and backend. */
export class ResourceLock implements Lock {
  readonly name: string;
  /** The mode of the lock; replaced when a semaphore is resized. */
  mode: LockMode;
  readonly #core: ManagerCore;
  readonly #options: ResolvedOptions;

  constructor(core: ManagerCore, name: string, mode: LockMode, options: ResolvedOptions) {
    this.#core = core;
    this.name = name;
    this.mode = mode;
    this.#options = options;
    this.#assertCountsWaiters(options);
  }

  get internals(): LockInternals {
    return { core: this.#core, options: this.#options };
  }

  acquire(options?: AcquireOptions): Promise<Lease> {
    return acquireTracing.hasSubscribers
      ? this.#traceAcquire(() => this.#acquire('acquire()', options, false), options, this.#waits(options))
      : this.#acquire('acquire()', options, false);
  }

  tryAcquire(options?: TryAcquireOptions): Promise<Lease | undefined> {
    return acquireTracing.hasSubscribers
      ? this.#traceAcquire(() => this.#tryAcquire(options), options, false)
      : this.#tryAcquire(options);
  }

  async #tryAcquire(options: TryAcquireOptions | undefined): Promise<LeaseHandle | undefined> {
    const core = this.#core;
    const resolved =
      options === undefined ? this.#options : this.#resolve('tryAcquire()', options, TRY_TABLE);
    if (resolved.within !== undefined) {
      core.assertOpen(this.name, CLOSED);
      const entered = await enterScope(core, this.name, this.mode, resolved, true, undefined);
      return entered && releaseIfAborted(entered, resolved.signal);
    }
    const lease = await new AcquireLoop(core, this.name, this.mode, resolved, core.clock.now(), false).run();
    return lease && releaseIfAborted(new LeaseHandle(core, lease, undefined), resolved.signal);
  }

  run<T>(work: (lease: Lease) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    return runTracing.hasSubscribers
      ? traced(runTracing, this.#trace, () => this.#run(work, options))
      : this.#run(work, options);
  }

  async #run<T>(work: (lease: Lease) => T | Promise<T>, options: AcquireOptions | undefined): Promise<T> {
    if (typeof work !== 'function') {
      throw mustBe('run(): the work', 'a function', work);
    }
    const { reentrant } = this.#options;
    const handle = acquireTracing.hasSubscribers
      ? await this.#traceAcquire(
          () => this.#acquire('run()', options, reentrant),
          options,
          this.#waits(options),
        )
      : await this.#acquire('run()', options, reentrant);
    return await holdAndWork(handle.follow(options?.signal), work, reentrant);
  }

  inspect(): Promise<ResourceState> {
    return this.#core.inspect(this.name);
  }

  #resolve(
    caller: string,
    options: AcquireOptions,
    table: typeof ACQUIRE_TABLE | typeof TRY_TABLE = ACQUIRE_TABLE,
  ): ResolvedOptions {
    const { capabilities } = this.#core.backend;
    const resolved = resolveOptions(table, this.#options, options, capabilities.ttl, caller);
    resolved.signal?.throwIfAborted();
    this.#assertCountsWaiters(resolved);
    if (resolved.steal) {
      this.#core.assertOpen(this.name, CLOSED);
      if (resolved.within !== undefined) throw mustBe('steal', 'absent where within is given', true);
      if (!capabilities.features.includes('steal')) throw this.#core.unsupported('steal', this.name);
    }
    return resolved;
  }

  #assertCountsWaiters({ maxWaiters }: ResolvedOptions): void {
    const { features } = this.#core.backend.capabilities;
    if (maxWaiters !== undefined && !features.includes('max-waiters'))
      throw this.#core.unsupported('maxWaiters', this.name);
  }

  #waits(options: AcquireOptions | undefined): boolean {
    const { waitMs = this.#options.waitMs, steal = this.#options.steal } = options ?? {};
    // No option is checked yet: a comparison may throw.
    return typeof waitMs === 'number' && waitMs > 0 && steal !== true;
  }

  get #trace(): LockTrace {
    return { name: this.name, backend: this.#core.backendName, mode: this.mode };
  }

  #traceAcquire<L extends LeaseHandle | undefined>(
    acquire: () => Promise<L>,
    options: AcquireOptions | undefined,
    waits: boolean,
  ): Promise<L> {
    // Tracing adds a microtask, before which the caller may abort.
    return traced(acquireTracing, { ...this.#trace, waits }, acquire).then(
      (lease) => lease && releaseIfAborted(lease, options?.signal),
    );
  }

  /** @param mayReenter - the scope around the caller, without `within` */
  async #acquire(
    caller: string,
    options: AcquireOptions | undefined,
    mayReenter: boolean,
  ): Promise<LeaseHandle> {
    const core = this.#core;
    const resolved = options === undefined ? this.#options : this.#resolve(caller, options);
    // The wait in a scope and the wait at the store share one deadline.
    const startedAt = core.clock.now();
    if (mayReenter || resolved.within !== undefined) {
      const entered = await this.#reenter(resolved);
      if (entered !== undefined) return releaseIfAborted(entered, resolved.signal);
    }
    const lease = await new AcquireLoop(
      core,
      this.name,
      this.mode,
      resolved,
      startedAt,
      resolved.waitMs > 0,
    ).run();
    if (lease !== undefined)
      return releaseIfAborted(new LeaseHandle(core, lease, undefined), resolved.signal);
    const waitedMs = core.clock.now() - startedAt;
    const query = core.holderQueries.ask(this.name);
    await query.answered;
    throw timeoutError(core, this.name, waitedMs, query);
  }

  /** Re-enters a lease: explicitly, by `within`, or by `run` inside `run` where the lock is reentrant (docs/spec.md §5.2). */
  async #reenter(resolved: ResolvedOptions): Promise<LeaseHandle | undefined> {
    const core = this.#core;
    // A lease that is held may be re-entered until the manager is closed.
    core.assertOpen(this.name, CLOSED);
    if (resolved.within !== undefined)
      return enterScope(core, this.name, this.mode, resolved, false, undefined);
    const scope = enclosingScope(
      ({ lease }) => lease.owner === core && lease.grant.request.resource === this.name,
    );
    return scope && enterScope(core, this.name, this.mode, resolved, false, scope);
  }
}
