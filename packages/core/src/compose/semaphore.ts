import { handOut } from '../acquire/hand-out.ts';
import type { LockMode, ResourceState } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { mustBe } from '../errors.ts';
import { inspectResource, OPERATOR_CALL_MS } from '../inspect.ts';
import { conflictError } from '../acquire/conflict-error.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { type Lock, type LockParts, ResourceLock } from '../lock.ts';
import type { AcquireOptions, ResolvedOptions } from '../options.ts';

/** Far below what any store counts exactly. */
const MOST_PERMITS = 1_000_000_000;

export interface PermitOptions extends AcquireOptions {
  /**
   * How many of the permits to take: a whole number from 1 to the semaphore's.
   * @defaultValue 1
   */
  readonly weight?: number | undefined;
}

/**
 * A number of permits, each a lease of its own. First come, first served where the backend's order is `fifo`: a heavy
 * request at the head is not overtaken by lighter ones.
 *
 * @example
 * ```ts
 * const slots = locks.semaphore('mail-api', 5);
 * await slots.run(() => send(mail), { weight: 2, waitMs: 60_000 });
 * ```
 */
export interface Semaphore<L extends BaseLease = Lease> extends Lock<L> {
  /** How many there are, as this object was told. */
  readonly permits: number;
  acquire(options?: PermitOptions): Promise<L>;
  tryAcquire(options?: PermitOptions): Promise<L | undefined>;
  run<T>(work: (lease: L) => T | Promise<T>, options?: PermitOptions): Promise<T>;
  /**
   * Sets the number of permits, for this object and for all that live on the resource. A lower number ends no hold:
   * nothing is granted until those that are held fit, and one who waits for more than there are now waits, with those
   * behind it, until there are more. Other objects that name the old number get `LOCK_CONFLICT` while
   * the resource is in use.
   * @param permits - a whole number from 1 to 1 000 000 000
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CONFLICT`, `LOCK_BACKEND`, `LOCK_CLOSED`
   */
  resize(permits: number): Promise<void>;
}

/** The semaphore of every backend with the mode `permit`. */
export class PermitLock implements Semaphore {
  readonly name: string;
  readonly #engine: Engine;
  readonly #options: ResolvedOptions;
  #permits: number;

  /** @throws LockError `LOCK_INVALID_ARGUMENT` */
  constructor(engine: Engine, name: string, permits: number, options: ResolvedOptions) {
    this.#engine = engine;
    this.name = name;
    this.#permits = checkPermits('permits', permits, MOST_PERMITS);
    this.#options = options;
  }

  get permits(): number {
    return this.#permits;
  }

  get mode(): LockMode {
    return { kind: 'permit', limit: this.#permits, weight: 1 };
  }

  get parts(): LockParts {
    return { engine: this.#engine, options: this.#options };
  }

  async acquire(options?: PermitOptions): Promise<Lease> {
    const [lock, rest] = this.#weighing(options);
    return handOut(await lock.acquire(rest), rest?.signal);
  }

  async tryAcquire(options?: PermitOptions): Promise<Lease | undefined> {
    const [lock, rest] = this.#weighing(options);
    const lease = await lock.tryAcquire(rest);
    return lease && handOut(lease, rest?.signal);
  }

  async run<T>(work: (lease: Lease) => T | Promise<T>, options?: PermitOptions): Promise<T> {
    const [lock, rest] = this.#weighing(options);
    return lock.run(work, rest);
  }

  inspect(): Promise<ResourceState> {
    return inspectResource(this.#engine, this.name);
  }

  async resize(permits: number): Promise<void> {
    checkPermits('permits', permits, MOST_PERMITS);
    const { backend } = this.#engine;
    const answer = await this.#engine.ask('resize', this.name, OPERATOR_CALL_MS, async (call) =>
      backend.resize?.(this.name, permits, call),
    );
    switch (answer?.status) {
      case 'set':
        this.#permits = permits;
        return;
      case 'conflict': {
        const mode = { ...this.mode, limit: permits } as LockMode;
        throw conflictError(this.#engine, { resource: this.name, mode }, answer.with);
      }
      default: {
        const cause = new Error('the backend broke its contract: no answer');
        throw this.#engine.backendError('resize', this.name, cause);
      }
    }
  }

  /** The lock on so many permits, and the options that are left. */
  #weighing(options: PermitOptions | undefined): [ResourceLock, AcquireOptions | undefined] {
    let weight: number | undefined = 1;
    let rest: AcquireOptions | undefined = options;
    if (typeof options === 'object' && options !== null) ({ weight = 1, ...rest } = options);
    checkPermits('weight', weight, this.#permits);
    const mode = { kind: 'permit', limit: this.#permits, weight } as const;
    return [new ResourceLock(this.#engine, this.name, mode, this.#options), rest];
  }
}

function checkPermits(what: string, value: unknown, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw mustBe(what, `a whole number from 1 to ${most}`, value);
}
