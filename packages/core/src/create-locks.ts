import type { BackendCapabilities, Holder, LockBackend, ResourceState } from './backend/types.ts';
import { checkBackend } from './backend/validate.ts';
import { Engine } from './engine.ts';
import { inspectResource, OPERATOR_CALL_MS } from './inspect.ts';
import type { BaseLease, Lease, LeaseOf } from './lease.ts';
import { type Lock, ResourceLock } from './lock.ts';
import { mustBe } from './errors.ts';
import { checkName } from './names.ts';
import { builtInDefaults, type LockOptions, type ResolvedOptions, resolveLockOptions } from './options.ts';
import { runOutside } from './scope/context.ts';
import type { Clock } from './tenure/clock.ts';

/** The locks of one backend. */
export interface LockManager<L extends BaseLease = Lease> extends AsyncDisposable {
  /** What the backend promises. */
  readonly capabilities: BackendCapabilities;
  /**
   * The exclusive lock on a resource.
   * @param name - 1 to 512 UTF-8 bytes of well-formed Unicode, case-sensitive
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_UNSUPPORTED`
   */
  lock(name: string, options?: LockOptions): Lock<L>;
  /** Who holds a resource and who waits for it. */
  inspect(name: string): Promise<ResourceState>;
  /**
   * Every resource that is held or waited for and whose name starts with `prefix`.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `list`
   */
  list(prefix?: string): AsyncIterable<ResourceState>;
  /**
   * Ends the hold of a resource, whoever has it, and gives those it ended; their holders are told at their next renewal.
   * With `acquisitionId`, only if that acquisition holds it.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `force-release`
   */
  forceRelease(
    name: string,
    options?: { readonly acquisitionId?: string | undefined },
  ): Promise<readonly Holder[]>;
  /**
   * Runs `work` outside of all reentrant scopes, for queues and batchers that run other people's work in the caller's
   * asynchronous context.
   */
  detached<T>(work: () => T): T;
  /**
   * Ends waits with `LOCK_CLOSED`, gives back what is held (its holders see `LOCK_LOST` with reason `closed`), and closes
   * what the backend itself opened. Never closes a client that the backend was given.
   */
  close(): Promise<void>;
}

/**
 * Makes locks on a backend. Costs no I/O.
 *
 * @param options - defaults for all locks of this manager
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option or a backend that contradicts itself
 * @example
 * ```ts
 * const locks = createLocks(memoryBackend(), { ttlMs: 30_000 });
 * await locks.lock('sku:42').run(async (lease) => sell(lease.fencingToken), { waitMs: 5_000 });
 * ```
 */
export function createLocks<const C extends BackendCapabilities>(
  backend: LockBackend<C>,
  options?: LockOptions,
): LockManager<LeaseOf<C>> {
  // The types say at compile time what this backend's capabilities say at run time.
  return new Locks(checkBackend(backend), options) as LockManager as unknown as LockManager<LeaseOf<C>>;
}

/** The one implementation of `LockManager`. */
export class Locks implements LockManager {
  readonly #engine: Engine;
  readonly #defaults: ResolvedOptions;

  constructor(backend: LockBackend, options?: LockOptions, clock?: Clock) {
    this.#defaults = resolveLockOptions(
      builtInDefaults(backend.capabilities.ttl),
      options,
      backend.capabilities.ttl,
    );
    this.#engine = new Engine(backend, clock);
  }

  get capabilities(): BackendCapabilities {
    return this.#engine.backend.capabilities;
  }

  lock(name: string, options?: LockOptions): Lock {
    const { modes, ttl } = this.capabilities;
    this.#engine.assertOpen(checkName(name));
    if (!modes.includes('exclusive')) throw this.#unsupported('exclusive locks', name);
    return new ResourceLock(
      this.#engine,
      name,
      { kind: 'exclusive' },
      resolveLockOptions(this.#defaults, options, ttl),
    );
  }

  async inspect(name: string): Promise<ResourceState> {
    return inspectResource(this.#engine, checkName(name));
  }

  list(prefix = ''): AsyncIterable<ResourceState> {
    const { backend } = this.#engine;
    this.#engine.assertOpen();
    if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
      throw mustBe('The prefix', 'a well-formed string', prefix);
    }
    if (backend.list === undefined) throw this.#unsupported('list()');
    return this.#pages(prefix);
  }

  async forceRelease(
    name: string,
    options: { readonly acquisitionId?: string | undefined } = {},
  ): Promise<readonly Holder[]> {
    checkName(name);
    const { acquisitionId } = options;
    if (acquisitionId !== undefined && (typeof acquisitionId !== 'string' || acquisitionId === '')) {
      throw mustBe('acquisitionId', 'a non-empty string', acquisitionId);
    }
    const { backend } = this.#engine;
    const { forceRelease } = backend;
    if (forceRelease === undefined) throw this.#unsupported('forceRelease()', name);
    return this.#engine.ask('release by force', name, OPERATOR_CALL_MS, (call) =>
      forceRelease.call(backend, name, acquisitionId, call),
    );
  }

  detached<T>(work: () => T): T {
    return runOutside(work);
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#pages(prefix: string): AsyncGenerator<ResourceState> {
    const engine = this.#engine;
    const call = { now: () => engine.now(), deadline: engine.now() + OPERATOR_CALL_MS };
    try {
      yield* engine.backend.list?.(prefix, call) ?? [];
    } catch (error) {
      throw this.#engine.backendError('list locks', undefined, error);
    }
  }

  #unsupported(what: string, resource?: string): Error {
    const { backendName } = this.#engine;
    return this.#engine.error(
      'LOCK_UNSUPPORTED',
      `The backend ${backendName} does not support ${what}.`,
      resource,
    );
  }
}
