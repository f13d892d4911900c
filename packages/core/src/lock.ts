import { handOut } from './acquire/hand-out.ts';
import { Pursuit } from './acquire/pursuit.ts';
import { lookUpHolders, timeoutError } from './acquire/timeout-error.ts';
import type { LockMode, ResourceState } from './backend/types.ts';
import type { Engine } from './engine.ts';
import { mustBe } from './errors.ts';
import { type BaseLease, type Lease, LeaseHandle } from './lease.ts';
import { type AcquireOptions, type ResolvedOptions, resolveAcquireOptions } from './options.ts';
import { inspectResource } from './inspect.ts';
import { holdAndWork } from './run.ts';
import { enclosingScope } from './scope/context.ts';
import { enterScope } from './scope/enter.ts';

/**
 * A resource in one mode. Making one costs nothing and reserves nothing.
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
  readonly mode: LockMode;
  /**
   * Waits for the lock.
   * @throws LockError `LOCK_TIMEOUT` after `waitMs`, `LOCK_BACKEND`, `LOCK_CLOSED`, `LOCK_INVALID_ARGUMENT`,
   * `LOCK_REENTRANT` with `within`; the reason of `signal` when it aborts
   */
  acquire(options?: AcquireOptions): Promise<L>;
  /**
   * Makes exactly one attempt; `undefined` when contended. It never queues and never overtakes those who wait.
   * @throws LockError as `acquire`, but no `LOCK_TIMEOUT`
   */
  tryAcquire(options?: AcquireOptions): Promise<L | undefined>;
  /**
   * Acquires, works, releases whatever happens, and gives what the work returned.
   * @throws LockError as `acquire`; `LOCK_LOST` if the lease was lost before the work ended, with `result` if it had
   * succeeded; what the work threw, unless that was the loss itself
   */
  run<T>(work: (lease: L) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
  /** Who holds and who waits. */
  inspect(): Promise<ResourceState>;
}

/** Where a lock is, and with which options: what `all` needs to take several in one step. */
export interface LockParts {
  readonly engine: Engine;
  readonly options: ResolvedOptions;
}

/** The `Lock` of every mode and backend. */
export class ResourceLock implements Lock {
  readonly name: string;
  readonly mode: LockMode;
  readonly #engine: Engine;
  readonly #options: ResolvedOptions;

  constructor(engine: Engine, name: string, mode: LockMode, options: ResolvedOptions) {
    this.#engine = engine;
    this.name = name;
    this.mode = mode;
    this.#options = options;
  }

  get parts(): LockParts {
    return { engine: this.#engine, options: this.#options };
  }

  acquire(options?: AcquireOptions): Promise<Lease> {
    return this.#acquire(options, false);
  }

  async tryAcquire(options?: AcquireOptions): Promise<Lease | undefined> {
    const resolved = this.#begin(options);
    if (resolved.within !== undefined) {
      const entered = await enterScope(this.#engine, this.name, this.mode, resolved, true);
      return entered && handOut(entered, resolved.signal);
    }
    const single = { ...resolved, waitMs: 0 };
    const hold = await new Pursuit(this.#engine, this.name, this.mode, single, this.#engine.now()).run();
    return hold === undefined ? undefined : handOut(new LeaseHandle(this.#engine, hold), resolved.signal);
  }

  async run<T>(work: (lease: Lease) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    if (typeof work !== 'function') {
      throw mustBe('What run() works', 'a function', work);
    }
    const lease = await this.#acquire(options, this.#options.reentrant);
    return await holdAndWork(lease, work, this.#options.reentrant);
  }

  inspect(): Promise<ResourceState> {
    return inspectResource(this.#engine, this.name);
  }

  #begin(options: AcquireOptions | undefined): ResolvedOptions {
    const resolved = resolveAcquireOptions(this.#options, options, this.#engine.backend.capabilities.ttl);
    resolved.signal?.throwIfAborted();
    this.#engine.assertOpen(this.name);
    if (resolved.steal) this.#checkSteal(resolved);
    return resolved;
  }

  #checkSteal({ within }: ResolvedOptions): void {
    if (within !== undefined) throw mustBe('steal', 'absent where within is given', true);
    if (!this.#engine.backend.capabilities.features.includes('steal'))
      throw this.#engine.unsupported('steal', this.name);
  }

  async #acquire(options: AcquireOptions | undefined, implicit: boolean): Promise<LeaseHandle> {
    const resolved = this.#begin(options);
    // One deadline for the local wait and the one at the store.
    const startedAt = this.#engine.now();
    if (implicit || resolved.within !== undefined) {
      const entered = await this.#reenter(resolved);
      if (entered !== undefined) return handOut(entered, resolved.signal);
    }
    const hold = await new Pursuit(this.#engine, this.name, this.mode, resolved, startedAt).run();
    if (hold !== undefined) return handOut(new LeaseHandle(this.#engine, hold), resolved.signal);
    const waitedMs = this.#engine.now() - startedAt;
    throw timeoutError(this.#engine, this.name, waitedMs, await lookUpHolders(this.#engine, this.name));
  }

  /** Re-entry is explicit, or of `run` inside `run` where the lock asks for it (docs/spec.md §5.2). */
  async #reenter(resolved: ResolvedOptions): Promise<LeaseHandle | undefined> {
    if (resolved.within !== undefined) return enterScope(this.#engine, this.name, this.mode, resolved, false);
    const scope = enclosingScope(
      (candidate) =>
        candidate.hold.owner === this.#engine && candidate.hold.grant.request.resource === this.name,
    );
    if (scope === undefined) return undefined;
    return enterScope(this.#engine, this.name, this.mode, resolved, false, scope);
  }
}
