import { inspect } from 'node:util';
import { matching, milliseconds, optional, type OptionTable, readOptions } from './backend/read-options.ts';
import type {
  BackendCapabilities,
  Call,
  Holder,
  LockBackend,
  LockMode,
  ResourceState,
} from './backend/types.ts';
import { checkBackend } from './backend/validate.ts';
import { LockSet } from './compose/lock-set.ts';
import type { MultiLock } from './compose/multi-lock.ts';
import type { ReadWriteLock } from './compose/read-write-lock.ts';
import { PermitLock, type Semaphore } from './compose/semaphore.ts';
import { ManagerCore, OPERATOR_CALL_MS } from './manager-core.ts';
import { CLOSED, DRAINING } from './call/call-deadlines.ts';
import { readableHolder } from './readable-state.ts';
import type { BaseLease, Downgradable, FencedLease, Lease, LeaseOf } from './lease.ts';
import { type HoldsNothingYet, type Lock, ResourceLock } from './lock.ts';
import { mustBe } from './errors.ts';
import { checkName } from './names.ts';
import {
  builtInDefaults,
  LOCK_TABLE,
  type LockOptions,
  MAX_TTL_MS,
  type ResolvedOptions,
  resolveOptions,
} from './options.ts';
import { runOutside } from './async-context.ts';
import type { Clock } from './tenure/clock.ts';

/** Options of {@link LockManager.close}. */
export interface CloseOptions {
  /**
   * For how many milliseconds leases may go on, while new acquires are refused. `Infinity`: until they are released.
   * @defaultValue 0
   */
  readonly drainMs?: number | undefined;
}

/** Options of {@link LockManager.ping}. */
export interface PingOptions {
  /**
   * For how many milliseconds to wait for the store's answer.
   * @defaultValue 1 000
   */
  readonly waitMs?: number | undefined;
}

/**
 * The locks of one backend, whatever leases it gives. {@link FencedLockManager} is one whose leases have tokens.
 * Methods can be taken from it: `const { lock } = createLocks(backend)`.
 *
 * `P` is `never` where the backend has no permits: there `semaphore()` does not compile.
 */
export interface LockManager<L extends BaseLease = Lease, P extends number = number> extends AsyncDisposable {
  /** What the backend promises. */
  readonly capabilities: BackendCapabilities;
  /**
   * The exclusive lock on a resource. Takes nothing yet: `acquire`, `tryAcquire` or `run` of the lock does.
   * @param name - 1 to 512 UTF-8 bytes of well-formed Unicode, case-sensitive
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_UNSUPPORTED`
   */
  lock(name: string, options?: LockOptions): Lock<L> & HoldsNothingYet;
  /**
   * Many readers or one writer on a resource.
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the modes `shared` and `exclusive`
   */
  readWriteLock(name: string, options?: LockOptions): ReadWriteLock<L> & HoldsNothingYet;
  /**
   * A number of permits on a resource. All users of the resource name the same number, or get `LOCK_CONFLICT`.
   * @param permits - a whole number from 1 to 1 000 000 000
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the mode `permit`
   */
  semaphore(name: string, permits: P, options?: LockOptions): Semaphore<L> & HoldsNothingYet;
  /**
   * Several locks, of this or any manager, that are acquired together: all or none, in an order that prevents deadlocks.
   * @throws LockError `LOCK_INVALID_ARGUMENT`
   */
  all<M extends BaseLease = L>(locks: readonly Lock<M>[]): MultiLock<M> & HoldsNothingYet;
  /**
   * Who holds a resource and who waits for it. As JSON a fencing token is a decimal string.
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_BACKEND`
   */
  inspect(name: string): Promise<ResourceState>;
  /**
   * Whether anybody holds a resource at this moment, in any mode. Only an acquire shows whether you get it.
   * @throws LockError as `inspect`
   */
  isLocked(name: string): Promise<boolean>;
  /**
   * Asks the store for a sign of life, on the connection that the locks use: for readiness probes.
   * @returns how long the answer took, in milliseconds
   * @throws LockError `LOCK_BACKEND` when the store failed or gave no answer in time, `LOCK_CLOSED` also while closing,
   * `LOCK_INVALID_ARGUMENT`
   */
  ping(options?: PingOptions): Promise<{ readonly tookMs: number }>;
  /**
   * Every resource that is held or waited for and whose name starts with `prefix`.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `list`; while it is read, `LOCK_CLOSED`, or
   * `LOCK_BACKEND` where the store failed or gave no answer within 10 s
   */
  list(prefix?: string): AsyncIterable<ResourceState>;
  /**
   * Ends the leases of a resource, whoever holds them, and gives their holders, who lose them at their next renewal. With
   * `acquisitionId`, ends only the lease of that acquisition.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `force-release`
   */
  forceRelease(
    name: string,
    options?: { readonly acquisitionId?: string | undefined },
  ): Promise<readonly Holder[]>;
  /**
   * Runs `work` outside of all reentrant scopes. For queues and batchers, which run the work of others in the caller's
   * asynchronous context.
   */
  detached<T>(work: () => T): T;
  /**
   * Ends waits with `LOCK_CLOSED`, releases all leases (their holders see `LOCK_LOST` with reason `closed`), and closes what
   * the backend itself opened. Never closes a client that the backend was given.
   *
   * With `drainMs`, leases go on first, with their renewals and re-entries, until they are released or the time is over. A
   * second call without it ends that time.
   * @throws LockError `LOCK_BACKEND` when the backend failed to close, or did not within 10 s; `LOCK_INVALID_ARGUMENT`
   */
  close(options?: CloseOptions): Promise<void>;
}

/** The locks of a backend with fencing tokens: the parameter type of services that pass the tokens on. */
export type FencedLockManager<P extends number = number> = LockManager<FencedLease, P>;

/** The manager of a backend with these capabilities. */
export type LockManagerOf<C extends BackendCapabilities> = LockManager<
  LeaseOf<C>,
  'permit' extends C['modes'][number] ? number : never
>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory';
// setup: declare function sell(token: bigint): Promise<void>;
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
): LockManagerOf<C> {
  // The types express at compile time the capabilities that the backend has at run time.
  return new Locks(checkBackend(backend), options) as LockManager as unknown as LockManagerOf<C>;
}

const PING_TABLE = {
  waitMs: optional(milliseconds(1, MAX_TTL_MS), 1_000),
} satisfies OptionTable<PingOptions>;
const CLOSE_TABLE = {
  drainMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 0),
} satisfies OptionTable<CloseOptions>;
const FORCE_RELEASE_TABLE = { acquisitionId: optional(matching('a non-empty string', isText)) };

/** The `LockManager` of all backends. */
export class Locks implements LockManager {
  readonly #core: ManagerCore;
  readonly #defaults: ResolvedOptions;

  constructor(backend: LockBackend, options?: LockOptions, clock?: Clock) {
    this.#defaults = resolveOptions(
      LOCK_TABLE,
      builtInDefaults(backend.capabilities.ttl),
      options,
      backend.capabilities.ttl,
      'createLocks()',
    );
    this.#core = new ManagerCore(backend, clock);
  }

  get capabilities(): BackendCapabilities {
    return this.#core.backend.capabilities;
  }

  // The methods are properties of the manager: `const { lock } = createLocks(…)` works.
  lock = (name: string, options?: LockOptions): Lock =>
    this.#lock('lock()', name, { kind: 'exclusive' }, 'exclusive locks', options);

  readWriteLock = (name: string, options?: LockOptions): ReadWriteLock => ({
    name,
    read: this.#lock('readWriteLock()', name, { kind: 'shared' }, 'shared locks', options),
    // Every lease has the method `downgrade`; only a writer's type shows it.
    write: this.lock(name, options) as Lock<Lease & Downgradable>,
  });

  semaphore = (name: string, permits: number, options?: LockOptions): Semaphore => {
    this.#check(name, 'permit', 'semaphores');
    return new PermitLock(this.#core, name, permits, this.#resolve('semaphore()', options));
  };

  // The set gives leases of the type that its members give.
  all = <M extends BaseLease = Lease>(locks: readonly Lock<M>[]): MultiLock<M> =>
    new LockSet(
      locks as readonly Lock<BaseLease>[] as readonly Lock[],
    ) as MultiLock<BaseLease> as MultiLock<M>;

  inspect = async (name: string): Promise<ResourceState> => this.#core.inspect(checkName(name));

  isLocked = async (name: string): Promise<boolean> => (await this.inspect(name)).holders.length > 0;

  ping = async (options?: PingOptions): Promise<{ readonly tookMs: number }> => {
    const { waitMs } = readOptions('ping()', options, PING_TABLE);
    const core = this.#core;
    const { backend } = core;
    const startedAt = core.now();
    await core.ask(
      'reach the store',
      undefined,
      waitMs,
      async (call) => backend.ping?.(call) ?? backend.inspect('ping', call),
    );
    return { tookMs: core.now() - startedAt };
  };

  list = (prefix = ''): AsyncIterable<ResourceState> => {
    const { backend } = this.#core;
    this.#core.assertOpen();
    if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
      throw mustBe('The prefix', 'a well-formed string', prefix);
    }
    if (backend.list === undefined) throw this.#core.unsupported('list()');
    return this.#pages(prefix);
  };

  forceRelease = async (
    name: string,
    options?: { readonly acquisitionId?: string | undefined },
  ): Promise<readonly Holder[]> => {
    checkName(name);
    const { acquisitionId } = readOptions('forceRelease()', options, FORCE_RELEASE_TABLE);
    const { backend } = this.#core;
    const { forceRelease } = backend;
    if (forceRelease === undefined) throw this.#core.unsupported('forceRelease()', name);
    return this.#core.ask('release by force', name, OPERATOR_CALL_MS, async (call) =>
      (await forceRelease.call(backend, name, acquisitionId, call)).map(readableHolder),
    );
  };

  readonly detached = runOutside;

  close = async (options?: CloseOptions): Promise<void> =>
    this.#core.close(readOptions('close()', options, CLOSE_TABLE).drainMs);

  /** What `console.log` shows: never a client or its address. */
  [inspect.custom](): object {
    const { backendName: backend, monitor, deadlines } = this.#core;
    return { backend, held: monitor.leases.size, closed: deadlines.hasReached(DRAINING) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#pages(prefix: string): AsyncGenerator<ResourceState> {
    const core = this.#core;
    const end = new AbortController();
    const call: Call = {
      now: () => core.now(),
      get deadline() {
        return core.now() + OPERATOR_CALL_MS;
      },
      signal: end.signal,
    };
    const read = core.stateReader();
    let states: AsyncIterator<ResourceState> | undefined;
    try {
      for (;;) {
        // Each page has its own limit: the time that the reader takes between them is not the store's.
        const next = await core.ask('list locks', undefined, OPERATOR_CALL_MS, async () => {
          states ??= core.backend.list?.(prefix, call)[Symbol.asyncIterator]();
          return states?.next();
        });
        if (next === undefined || next.done) return;
        yield read(next.value);
      }
    } finally {
      end.abort();
      // Not awaited: it ends when the call that hangs does, if ever.
      void (async () => states?.return?.())().catch(() => {});
    }
  }

  #lock(
    caller: string,
    name: string,
    mode: LockMode,
    what: string,
    options: LockOptions | undefined,
  ): ResourceLock {
    this.#check(name, mode.kind, what);
    return new ResourceLock(this.#core, name, mode, this.#resolve(caller, options));
  }

  #check(name: string, kind: LockMode['kind'], what: string): void {
    // Not refused while the manager drains: a lease may be re-entered by a new lock object.
    this.#core.assertOpen(checkName(name), CLOSED);
    if (!this.capabilities.modes.includes(kind)) throw this.#core.unsupported(what, name);
  }

  #resolve(caller: string, options: LockOptions | undefined): ResolvedOptions {
    return resolveOptions(LOCK_TABLE, this.#defaults, options, this.capabilities.ttl, caller);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
