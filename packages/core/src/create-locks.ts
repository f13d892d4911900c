// One file, since half of it is the documentation of the lock manager, which is read in one piece.
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
import { MultiResourceLock } from './compose/multi-resource-lock.ts';
import type { MultiLock } from './compose/multi-lock.ts';
import type { ReadWriteLock } from './compose/read-write-lock.ts';
import { PermitLock, type Semaphore } from './compose/semaphore.ts';
import { ManagerCore } from './manager-core.ts';
import { CLOSED, DRAINING } from './call/call-deadlines.ts';
import { readableHolder } from './readable-state.ts';
import type { BaseLease, Downgradable, FencedLease, Lease, LeaseOf } from './lease.ts';
import { type HoldsNothingYet, type Lock, ResourceLock } from './lock.ts';
import { mustBe } from './errors.ts';
import { isTransferred } from './acquire/acquisition-id.ts';
import { checkName, OWN_NAMES, refuseOwnName, WAIT_NAMES } from './names.ts';
import {
  ANSWER_MS,
  ANSWER_TABLE,
  builtInDefaults,
  ELSEWHERE,
  LOCK_TABLE,
  type LockOptions,
  MANAGER_TABLE,
  type ManagerOptions,
  type ResolvedOptions,
  resolveOptions,
} from './options.ts';
import { runOutside } from './async-context.ts';
import { type Clock, CombinedClock } from './lifetime/clock.ts';

/** Options of {@link LockManager.close}. */
export interface CloseOptions {
  /**
   * How long held leases may go on while new acquires are refused, in milliseconds. `Infinity`: until their release.
   * @defaultValue 0
   */
  readonly drainMs?: number | undefined;
}

/** Options of {@link LockManager.ping}. */
export interface PingOptions {
  /**
   * How long the store may take to answer, in milliseconds, from 1 to 3 600 000.
   * @defaultValue that of the manager: 10 000
   */
  readonly answerMs?: number | undefined;
}

/**
 * All locks of one backend. Create one per process. `const { lock } = createLocks(backend)` works. The leases of a
 * {@link FencedLockManager} have tokens.
 *
 * `P` is `never` where the backend has no permits, so that `semaphore()` does not compile.
 */
export interface LockManager<L extends BaseLease = Lease, P extends number = number> extends AsyncDisposable {
  readonly capabilities: BackendCapabilities;
  /**
   * The exclusive lock on a name. Sends nothing: `run`, `acquire` or `tryAcquire` of the lock does.
   * @param name - 1 to 512 UTF-8 bytes of well-formed Unicode, case-sensitive
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_UNSUPPORTED`
   */
  lock(name: string, options?: LockOptions): Lock<L> & HoldsNothingYet;
  /**
   * A lock for many readers or one writer.
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the modes `shared` and `exclusive`
   */
  readWriteLock(name: string, options?: LockOptions): ReadWriteLock<L> & HoldsNothingYet;
  /**
   * A semaphore: a number of permits on a name. All users give the same number, or get `LOCK_CONFLICT`.
   * @param permits - a whole number from 1 to 1 000 000 000
   * @throws LockError as `lock`; `LOCK_UNSUPPORTED` on a backend without the mode `permit`
   */
  semaphore(name: string, permits: P, options?: LockOptions): Semaphore<L> & HoldsNothingYet;
  /**
   * Several locks, of any managers, as one: all or none, in an order that prevents deadlocks.
   * @throws LockError `LOCK_INVALID_ARGUMENT`
   */
  all<M extends BaseLease = L>(locks: readonly Lock<M>[]): MultiLock<M> & HoldsNothingYet;
  /**
   * Shows who holds a lock and who waits. As JSON a fencing token is a decimal string.
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_BACKEND`
   */
  inspect(name: string): Promise<ResourceState>;
  /**
   * Whether anybody holds a lock now, in any mode. Only an acquire shows whether you get it.
   * @throws LockError as `inspect`
   */
  isLocked(name: string): Promise<boolean>;
  /**
   * Checks that the store answers, on the connection of the locks. For readiness probes, not for liveness.
   * @returns how long the answer took, in milliseconds
   * @throws LockError `LOCK_BACKEND` on a failure or without an answer within `answerMs`, `LOCK_CLOSED`, `LOCK_INVALID_ARGUMENT`
   */
  ping(options?: PingOptions): Promise<{ readonly tookMs: number }>;
  /**
   * Creates or migrates what the store needs before the first lock (a schema, tables, a bucket, an index), and what `once` and `coalesce`
   * keep there: a step of a deployment, by a user with the right to create. Afterwards the application needs no such right. Any number of
   * processes may call it at once, and again. Where the store needs nothing it resolves.
   *
   * No time limits it, not `answerMs` either, since a migration may take long; `close()` ends the wait.
   * @throws LockError `LOCK_BACKEND`, which says what went wrong, such as the right that is missing; `LOCK_CLOSED`
   */
  prepare(): Promise<void>;
  /**
   * Lists the locks that are held or waited for and whose name starts with `prefix`. What core keeps of long waits, in names that begin
   * with `@locks/waits/`, is listed only for a prefix that begins with `@locks/`.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `list`; while it is read, `LOCK_CLOSED`, or `LOCK_BACKEND`
   * on a failure or without an answer within `answerMs`
   */
  list(prefix?: string): AsyncIterable<ResourceState>;
  /**
   * Ends the leases on a name, and gives their former holders, who learn of it at their next renewal. `acquisitionId` limits it to one
   * lease.
   * @throws LockError `LOCK_UNSUPPORTED` on a backend without the feature `force-release`
   */
  forceRelease(
    name: string,
    options?: { readonly acquisitionId?: string | undefined },
  ): Promise<readonly Holder[]>;
  /**
   * Runs `work` outside all reentrant scopes. For queues and batchers, which run tasks of others in your asynchronous context.
   */
  detached<T>(work: () => T): T;
  /**
   * Ends waits with `LOCK_CLOSED`, releases all leases (their holders see `LOCK_LOST`, reason `closed`), and closes what the backend
   * opened. Your client stays open.
   *
   * With `drainMs` (default 0), held leases go on until their release or the end of that time. A second call ends it.
   * @throws LockError `LOCK_BACKEND` when the backend failed to close within 10 s; `LOCK_INVALID_ARGUMENT`
   */
  close(options?: CloseOptions): Promise<void>;
}

/** A manager whose leases have fencing tokens. Use it as a parameter type in services that pass tokens on. */
export type FencedLockManager<P extends number = number> = LockManager<FencedLease, P>;

/** The type of the manager of a backend with these capabilities. */
export type LockManagerOf<C extends BackendCapabilities> = LockManager<
  LeaseOf<C>,
  'permit' extends C['modes'][number] ? number : never
>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory';
// setup: declare function sell(token: bigint): Promise<void>;
/**
 * Creates the manager of all locks on a backend. Sends nothing.
 *
 * @param options - defaults of all its locks, and `answerMs`
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option or a backend that contradicts itself
 * @example
 * ```ts
 * const locks = createLocks(memoryBackend(), { ttlMs: 30_000 });
 * await locks.lock('sku:42').run(async (lease) => sell(lease.fencingToken), { waitMs: 5_000 });
 * ```
 */
export function createLocks<const C extends BackendCapabilities>(
  backend: LockBackend<C>,
  options?: ManagerOptions,
): LockManagerOf<C> {
  // The types express at compile time the capabilities that the backend has at run time.
  return new Locks(checkBackend(backend), options) as LockManager as unknown as LockManagerOf<C>;
}

const CLOSE_TABLE = {
  drainMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 0),
} satisfies OptionTable<CloseOptions>;
const FORCE_RELEASE_TABLE = { acquisitionId: optional(matching('a non-empty string', isText)) };

/** The `LockManager` of all backends. */
export class Locks implements LockManager {
  readonly #core: ManagerCore;
  readonly #defaults: ResolvedOptions;

  constructor(backend: LockBackend, options?: ManagerOptions, clock?: Clock) {
    const { ttl } = backend.capabilities;
    this.#defaults = resolveOptions(MANAGER_TABLE, builtInDefaults(ttl), options, ttl, 'createLocks()');
    this.#core = new ManagerCore(
      backend,
      options?.answerMs ?? ANSWER_MS,
      clock ?? backend.clock ?? new CombinedClock(),
      options?.deadlockAfterMs,
      options?.renewalThread,
    );
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
    this.#check(name, 'permit', 'semaphores', options);
    return new PermitLock(this.#core, name, permits, this.#resolve('semaphore()', options));
  };

  // The multi-lock gives leases of the type that its members give.
  all = <M extends BaseLease = Lease>(locks: readonly Lock<M>[]): MultiLock<M> =>
    new MultiResourceLock(
      locks as readonly Lock<BaseLease>[] as readonly Lock[],
    ) as MultiLock<BaseLease> as MultiLock<M>;

  inspect = async (name: string): Promise<ResourceState> => this.#core.inspect(checkName(name));

  isLocked = async (name: string): Promise<boolean> => (await this.inspect(name)).holders.length > 0;

  ping = async (options?: PingOptions): Promise<{ readonly tookMs: number }> => {
    const { answerMs } = readOptions('ping()', options, ANSWER_TABLE, ELSEWHERE);
    const core = this.#core;
    const { backend } = core;
    const startedAt = core.now();
    await core.ask(
      'reach the store',
      undefined,
      async (call) => backend.ping?.(call) ?? backend.inspect('ping', call),
      answerMs,
    );
    return { tookMs: core.now() - startedAt };
  };

  prepare = async (): Promise<void> => {
    const { backend } = this.#core;
    const send = async (call: Call) => backend.prepare?.(call);
    await this.#core.askAndStay('prepare the store', send, Number.POSITIVE_INFINITY);
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
    if (backend.forceRelease === undefined) throw this.#core.unsupported('forceRelease()', name);
    return this.#core.ask('release by force', name, async (call) => {
      const end = async (id?: string) =>
        (await this.#core.protocol.calls.forceRelease?.(name, id, call)) as readonly Holder[];
      let ended = await end(acquisitionId);
      if (ended.length === 0 && acquisitionId !== undefined) {
        // The id may be that of a lease on its way, which the store has under an id with a secret part.
        const { holders } = await backend.inspect(name, call, { waiters: false });
        const transferred = holders.find((holder) => readableHolder(holder).acquisitionId === acquisitionId);
        if (transferred !== undefined && isTransferred(transferred.acquisitionId))
          ended = await end(transferred.acquisitionId);
      }
      return ended.map(readableHolder);
    });
  };

  readonly detached = runOutside;

  close = async (options?: CloseOptions): Promise<void> =>
    this.#core.close(readOptions('close()', options, CLOSE_TABLE).drainMs);

  /** The output of `console.log`: never a client or its address. */
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
        return core.now() + core.answerMs;
      },
      signal: end.signal,
    };
    const read = core.stateReader();
    let states: AsyncIterator<ResourceState> | undefined;
    try {
      for (;;) {
        // Each page has its own limit: the time that the reader takes between them is not the store's.
        const next = await core.ask('list locks', undefined, async () => {
          states ??= core.backend.list?.(prefix, call)[Symbol.asyncIterator]();
          return states?.next();
        });
        if (next === undefined || next.done) return;
        if (prefix.startsWith(OWN_NAMES) || !next.value.name.startsWith(WAIT_NAMES)) yield read(next.value);
      }
    } finally {
      end.abort();
      // The iterator's end is not awaited: it comes when the call that hangs ends, if ever.
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
    this.#check(name, mode.kind, what, options);
    return new ResourceLock(this.#core, name, mode, this.#resolve(caller, options));
  }

  #check(name: string, kind: LockMode['kind'], what: string, options: LockOptions | undefined): void {
    // A new lock object is not refused while the manager drains: a lease may be re-entered by it.
    this.#core.assertOpen(checkName(name), CLOSED);
    refuseOwnName(name, options);
    if (!this.capabilities.modes.includes(kind)) throw this.#core.unsupported(what, name);
  }

  #resolve(caller: string, options: LockOptions | undefined): ResolvedOptions {
    return resolveOptions(LOCK_TABLE, this.#defaults, options, this.capabilities.ttl, caller);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
