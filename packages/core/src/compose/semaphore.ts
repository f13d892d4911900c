import { releaseIfAborted } from '../lease/lease-handle.ts';
import { optional, readOptions, wholeNumber } from '../backend/read-options.ts';
import type { ManagerCore } from '../manager-core.ts';
import { conflictError } from '../acquire/conflict-error.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { type Lock, ResourceLock } from '../lock.ts';
import {
  ACQUIRE_TABLE,
  type AcquireOptions,
  ELSEWHERE,
  type ResolvedOptions,
  TRY_TABLE,
} from '../options.ts';

/** Reads a number of permits. Every store counts far higher numbers exactly. */
const readPermits = wholeNumber(1, 1_000_000_000);

export interface PermitOptions extends AcquireOptions {
  /**
   * The number of permits to take: a whole number from 1 to that of the semaphore.
   * @defaultValue 1
   */
  readonly weight?: number | undefined;
}

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function send(mail: string): Promise<void>; declare const mail: string;
/**
 * A number of permits on one name. First come, first served where the backend's order is `fifo`: lighter requests do not overtake a
 * heavy one.
 *
 * @example
 * ```ts
 * const slots = locks.semaphore('mail-api', 5);
 * await slots.run(() => send(mail), { weight: 2, waitMs: 60_000 });
 * ```
 */
export interface Semaphore<L extends BaseLease = Lease> extends Lock<L> {
  /** The number of permits that this object was created with, or resized to. */
  readonly permits: number;
  acquire(this: object, options?: PermitOptions): Promise<L>;
  tryAcquire(this: object, options?: Omit<PermitOptions, 'waitMs'>): Promise<L | undefined>;
  run<T>(this: object, work: (lease: L) => T | Promise<T>, options?: PermitOptions): Promise<T>;
  /**
   * Sets the number of permits for this object and for all leases and waiters of the name. A lower number ends no lease: nothing is
   * granted until the held permits fit. A waiter that wants more than exist waits, with those behind it. Other objects with the old
   * number get `LOCK_CONFLICT` while the name is in use.
   * @param permits - a whole number from 1 to 1 000 000 000
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CONFLICT`, `LOCK_BACKEND`, `LOCK_CLOSED`
   */
  resize(this: object, permits: number): Promise<void>;
}

/** The semaphore of every backend with the mode `permit`. */
export class PermitLock extends ResourceLock implements Semaphore {
  #permits: number;

  /** @throws LockError `LOCK_INVALID_ARGUMENT` */
  constructor(core: ManagerCore, name: string, permits: number, options: ResolvedOptions) {
    const limit = readPermits(permits, 'semaphore(): permits');
    super(core, name, { kind: 'permit', limit, weight: 1 }, options);
    this.#permits = limit;
  }

  get permits(): number {
    return this.#permits;
  }

  override async acquire(options?: PermitOptions): Promise<Lease> {
    const [lock, rest] = this.#split('acquire()', options);
    return releaseIfAborted(await lock.acquire(rest), rest?.signal);
  }

  override async tryAcquire(options?: Omit<PermitOptions, 'waitMs'>): Promise<Lease | undefined> {
    const [lock, rest] = this.#split('tryAcquire()', options, TRY_TABLE);
    const lease = await lock.tryAcquire(rest);
    return lease && releaseIfAborted(lease, rest?.signal);
  }

  override async run<T>(work: (lease: Lease) => T | Promise<T>, options?: PermitOptions): Promise<T> {
    const [lock, rest] = this.#split('run()', options);
    return lock.run(work, rest);
  }

  async resize(permits: number): Promise<void> {
    readPermits(permits, 'resize(): permits');
    const { core } = this.internals;
    const mode = { kind: 'permit', limit: permits, weight: 1 } as const;
    const answer = await core.ask('resize', this.name, async (call) =>
      core.protocol.calls.resize?.(this.name, permits, call),
    );
    switch (answer?.status) {
      case 'set':
        this.#permits = permits;
        this.mode = mode;
        return;
      case 'conflict':
        throw conflictError(core, { resource: this.name, mode }, answer.with);
      default:
        answer satisfies undefined;
        throw core.contractError('resize', this.name, 'no answer');
    }
  }

  /** Splits options: returns the lock on `weight` permits, and the other options. */
  #split(
    caller: string,
    options: PermitOptions | undefined,
    ofLock: typeof ACQUIRE_TABLE | typeof TRY_TABLE = ACQUIRE_TABLE,
  ): [ResourceLock, AcquireOptions | undefined] {
    const table = { ...ofLock, weight: optional(wholeNumber(1, this.#permits), 1) };
    const { weight } = readOptions(caller, options, table, ELSEWHERE);
    const mode = { kind: 'permit', limit: this.#permits, weight } as const;
    const { core, options: own } = this.internals;
    const lock = new ResourceLock(core, this.name, mode, own);
    if (options === undefined) return [lock, undefined];
    const { weight: _, ...rest } = options;
    return [lock, rest];
  }
}
