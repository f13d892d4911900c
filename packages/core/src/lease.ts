import type { BackendCapabilities, LockMode } from './backend/types.ts';
import type { Engine } from './engine.ts';
import { publish } from './events.ts';
import { checkDuration, MAX_TTL_MS } from './options.ts';
import { Scope } from './scope/scope.ts';
import type { Hold } from './tenure/hold.ts';
import { identity } from './tenure/keeper.ts';
import { downgrade } from './tenure/downgrade.ts';
import { renewNow } from './tenure/renew-now.ts';
import { quote } from './errors.ts';

/** What every lease has, whatever its backend promises. */
export interface BaseLease extends AsyncDisposable {
  /** The name of the resource. */
  readonly name: string;
  readonly mode: LockMode;
  /** The only identity of this acquisition that the store knows. */
  readonly acquisitionId: string;
  /** How many handles of this lease are not released yet: 1, and one more for each re-entry. */
  readonly holdCount: number;
  /** Milliseconds that the lease is still valid without another renewal; 0 when it was released or lost. */
  readonly validForMs: number;
  /** Aborts with a `LOCK_LOST` error the moment the lease is lost; never because of a release. */
  readonly signal: AbortSignal;
  /**
   * Throws unless the lease is valid for more than `minRemainingMs`. Where the store limits hand-overs (to 2 s in Redis and
   * PostgreSQL), a lease that was waited for has no more than that until its first renewal, in a third of it; the option
   * `minRemainingMs` asks for more from the start.
   * @param minRemainingMs - milliseconds; default 0
   * @throws LockError `LOCK_LOST`, without a `reason` if it is still valid but for less; `LOCK_NOT_HELD` after a release
   */
  assertValid(minRemainingMs?: number): void;
  /**
   * Pushes the end of the lease to `ttlMs` from now, and renews by it from then on. Beside a shorter renewal that has no
   * answer it counts for no more than that one, and is repeated in a third of it: the store may carry them out in any order.
   * @param ttlMs - milliseconds; default: the ttl so far
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_BACKEND` when the store gave no clear answer (the lease stays),
   * `LOCK_INVALID_ARGUMENT`
   */
  renew(ttlMs?: number): Promise<void>;
  /**
   * Gives the lease back; the last handle of a re-entered one gives it back to the store. A second call is a no-op.
   * @throws LockError `LOCK_LOST` if it was lost before, `LOCK_BACKEND` if the store gave no answer (it ends by its ttl)
   */
  release(): Promise<void>;
}

/**
 * The right to a resource, until it is released, expired or lost. `fencingToken` rises with every change of holder; where
 * the backend has none, reading it does not compile.
 */
export interface Lease extends BaseLease {
  readonly fencingToken?: bigint | undefined;
}

/** What the lease of a writer can do besides. */
export interface Downgradable {
  /**
   * Turns the write lease into a read lease, with the same token, without a moment in which another writer could come
   * between; waiting readers enter. After `LOCK_BACKEND` it may be either: call it again, or release the lease.
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_BACKEND`, `LOCK_REENTRANT` while re-entered handles are not
   * released
   */
  downgrade(): Promise<void>;
}

/** The lease that a backend with these capabilities gives. */
export type LeaseOf<C extends BackendCapabilities> = [C['fencing']] extends ['none']
  ? BaseLease
  : 'none' extends C['fencing']
    ? Lease
    : BaseLease & { readonly fencingToken: bigint };

/** One handle of a hold: what users get. */
export class LeaseHandle implements BaseLease {
  readonly #engine: Engine;
  readonly #hold: Hold;
  /** Present in a re-entry: the turn that it has among its siblings. */
  readonly #turn: Scope | undefined;
  #released = false;
  #releasing: Promise<void> | undefined;

  constructor(engine: Engine, hold: Hold, turn?: Scope) {
    this.#engine = engine;
    this.#hold = hold;
    this.#turn = turn;
  }

  /** The handle of a lease, if it is one of this copy of core. */
  static of(lease: unknown): LeaseHandle | undefined {
    return typeof lease === 'object' && lease !== null && #hold in lease ? (lease as LeaseHandle) : undefined;
  }

  get engine(): Engine {
    return this.#engine;
  }

  get hold(): Hold {
    return this.#hold;
  }

  /** Where re-entries of this handle take their turns; made when first asked for. */
  get scope(): Scope {
    return this.#turn ?? (this.#hold.scope ??= new Scope(this.#hold));
  }

  get isReleased(): boolean {
    return this.#released;
  }

  get name(): string {
    return this.#hold.grant.request.resource;
  }

  get mode(): LockMode {
    return this.#hold.grant.request.mode;
  }

  get acquisitionId(): string {
    return this.#hold.grant.request.acquisitionId;
  }

  get fencingToken(): bigint | undefined {
    return this.#hold.grant.fencingToken;
  }

  get holdCount(): number {
    return this.#hold.count;
  }

  get validForMs(): number {
    if (this.isReleased || this.#hold.lost !== undefined) return 0;
    return Math.max(0, this.#hold.deadline - this.#engine.now());
  }

  get signal(): AbortSignal {
    return this.#hold.signal;
  }

  assertValid(minRemainingMs = 0): void {
    checkDuration('minRemainingMs', minRemainingMs, 0, MAX_TTL_MS);
    this.#assertHeld();
    const left = this.validForMs;
    if (left > minRemainingMs) return;
    throw this.#engine.error(
      'LOCK_LOST',
      `The lease on ${quote(this.name)} is valid for ${Math.floor(left)} ms more; ` +
        `more than ${minRemainingMs} ms were asked for. Renew it, or use a longer ttlMs.`,
      this.name,
    );
  }

  async renew(ttlMs?: number): Promise<void> {
    this.#assertHeld();
    await renewNow(this.#engine, this.#hold, ttlMs);
  }

  async downgrade(): Promise<void> {
    this.#assertHeld();
    await downgrade(this.#engine, this.#hold);
    this.#assertHeld();
  }

  release(): Promise<void> {
    if (!this.#released) {
      this.#released = true;
      this.#releasing = this.#release();
    }
    // Not there yet: the loss comes out at this very release, and its listener releases too.
    return this.#releasing ?? Promise.reject(this.#hold.lost);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      // Thrown here it would hide the error of the block that is being left (docs/spec.md §3.4).
      publish('locks:release-failed', { ...identity(this.#hold), error });
    }
  }

  #assertHeld(): void {
    if (this.isReleased) {
      throw this.#engine.error('LOCK_NOT_HELD', `The lease on ${quote(this.name)} was released.`, this.name);
    }
    const lost = this.#hold.lost;
    if (lost !== undefined) throw lost;
  }

  #release(): Promise<void> {
    const hold = this.#hold;
    hold.count -= 1;
    if (this.#turn !== undefined) this.#turn.leaveWhenEmpty();
    else if (hold.scope !== undefined) hold.scope.closeToEntries();
    if (hold.count === 0) return this.#engine.release(hold);
    return hold.lost === undefined ? Promise.resolve() : Promise.reject(hold.lost);
  }
}
