import type {
  BackendCapabilities,
  Call,
  Holder,
  LockBackend,
  LockMode,
  ResourceState,
} from './backend/types.ts';
import { checkBackend } from './backend/validate.ts';
import { LockSet } from './compose/acquire-all.ts';
import type { MultiLock } from './compose/all.ts';
import type { ReadWriteLock } from './compose/read-write-lock.ts';
import { PermitLock, type Semaphore } from './compose/semaphore.ts';
import { Engine } from './engine.ts';
import { asked } from './acquire/failure.ts';
import { inspectResource, OPERATOR_CALL_MS } from './inspect.ts';
import type { BaseLease, Downgradable, Lease, LeaseOf } from './lease.ts';
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
  /**
   * Many readers or one writer on a resource.
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the modes `shared` and `exclusive`
   */
  readWriteLock(name: string, options?: LockOptions): ReadWriteLock<L>;
  /**
   * A number of permits on a resource. All who use it name the same number, or get `LOCK_CONFLICT`.
   * @param permits - a whole number from 1 to 1 000 000 000
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the mode `permit`
   */
  semaphore(name: string, permits: number, options?: LockOptions): Semaphore<L>;
  /**
   * Several locks, of this or any manager, to acquire together: all or none, in an order that prevents deadlocks.
   * @throws LockError `LOCK_INVALID_ARGUMENT`
   */
  all<M extends BaseLease = L>(locks: readonly Lock<M>[]): MultiLock<M>;
  /** Who holds a resource and who waits for it. */
  inspect(name: string): Promise<ResourceState>;
  /**
   * Every resource that is held or waited for and whose name starts with `prefix`.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `list`; while it is read, `LOCK_CLOSED`, or
   * `LOCK_BACKEND` where the store failed or gave no answer within 10 s
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
   * @throws LockError `LOCK_BACKEND` when the backend failed to close, or did not within 10 s
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
    return this.#lock(name, { kind: 'exclusive' }, 'exclusive locks', options);
  }

  readWriteLock(name: string, options?: LockOptions): ReadWriteLock {
    const read = this.#lock(name, { kind: 'shared' }, 'shared locks', options);
    // Every lease can downgrade; only that of a writer says so.
    const write = this.lock(name, options) as Lock<Lease & Downgradable>;
    return { name, read, write };
  }

  semaphore(name: string, permits: number, options?: LockOptions): Semaphore {
    this.#check(name, 'permit', 'semaphores');
    return new PermitLock(this.#engine, name, permits, this.#resolve(options));
  }

  all<M extends BaseLease = Lease>(locks: readonly Lock<M>[]): MultiLock<M> {
    // A lock of whatever leases: the set gives out what its members give.
    return new LockSet(
      locks as readonly Lock<BaseLease>[] as readonly Lock[],
    ) as MultiLock<BaseLease> as MultiLock<M>;
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
    if (backend.list === undefined) throw this.#engine.unsupported('list()');
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
    if (forceRelease === undefined) throw this.#engine.unsupported('forceRelease()', name);
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
    const end = new AbortController();
    const call: Call = {
      now: () => engine.now(),
      get deadline() {
        return engine.now() + OPERATOR_CALL_MS;
      },
      signal: end.signal,
    };
    let states: AsyncIterator<ResourceState> | undefined;
    try {
      for (;;) {
        // A limit for each: how long the reader takes between them is no matter of the store.
        const next = await engine.ask('list locks', undefined, OPERATOR_CALL_MS, async () => {
          states ??= engine.backend.list?.(prefix, call)[Symbol.asyncIterator]();
          return states?.next();
        });
        if (next === undefined || next.done) return;
        yield next.value;
      }
    } finally {
      end.abort();
      // Not awaited: it comes to an end when the call that hangs does, if ever.
      void asked(() => states?.return?.()).catch(() => {});
    }
  }

  #lock(name: string, mode: LockMode, what: string, options: LockOptions | undefined): ResourceLock {
    this.#check(name, mode.kind, what);
    return new ResourceLock(this.#engine, name, mode, this.#resolve(options));
  }

  #check(name: string, kind: LockMode['kind'], what: string): void {
    this.#engine.assertOpen(checkName(name));
    if (!this.capabilities.modes.includes(kind)) throw this.#engine.unsupported(what, name);
  }

  #resolve(options: LockOptions | undefined): ResolvedOptions {
    return resolveLockOptions(this.#defaults, options, this.capabilities.ttl);
  }
}
