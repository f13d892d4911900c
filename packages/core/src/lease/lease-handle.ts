import { inspect } from 'node:util';
import { abortSignal } from '../backend/abort-signal.ts';
import { milliseconds } from '../backend/read-options.ts';
import type { LockMode } from '../backend/types.ts';
import { quote } from '../errors.ts';
import { type LockTrace, releaseTracing, traced } from '../events.ts';
import type { BaseLease } from '../lease.ts';
import type { ManagerCore } from '../manager-core.ts';
import { MAX_TTL_MS } from '../options.ts';
import { withPlainToken } from '../readable-state.ts';
import { Scope } from '../scope/scope.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import { downgrade } from './downgrade.ts';
import { releaseQuietly } from './release-quietly.ts';
import { renewNow } from './renew-now.ts';

const readRemaining = milliseconds(0, MAX_TTL_MS);

/** The last step of an acquire: a caller who aborted in the very moment of the grant does not hold (docs/spec.md §2.3). */
export function releaseIfAborted<L extends Pick<BaseLease, 'release'>>(
  lease: L,
  signal: AbortSignal | undefined,
): L {
  if (!signal?.aborted) return lease;
  // The release runs in the background: the rejection does not wait for it.
  void releaseQuietly(lease);
  throw abortSignal(signal, 'signal').reason;
}

/** One handle of a lease: the object that users get. */
export class LeaseHandle implements BaseLease {
  readonly core: ManagerCore;
  readonly #lease: LeaseState;
  /** The scope that a re-entered handle has entered; `undefined` for the first handle of a lease. */
  readonly #entered: Scope | undefined;
  #scope: Scope | undefined;
  #released = false;
  /** What ended the handle, for messages. */
  #end = 'released';
  #releasing: Promise<void> | undefined;
  #callers: AbortSignal | undefined;
  #signal: AbortSignal | undefined;

  constructor(core: ManagerCore, lease: LeaseState, entered: Scope | undefined) {
    this.core = core;
    this.#lease = lease;
    this.#entered = entered;
    this.#scope = entered;
    if (entered === undefined) lease.handle = this;
  }

  /** Returns the value as a handle; `undefined` unless this copy of core made it. */
  static of(lease: unknown): LeaseHandle | undefined {
    return typeof lease === 'object' && lease !== null && #lease in lease
      ? (lease as LeaseHandle)
      : undefined;
  }

  get lease(): LeaseState {
    return this.#lease;
  }

  /** The scope in which re-entries by this handle take turns; created on first read. */
  get scope(): Scope {
    if (this.#scope === undefined) {
      const scope = new Scope(this.#lease, undefined);
      this.#lease.onLost = () => scope.closeToEntries();
      this.#scope = scope;
    }
    return this.#scope;
  }

  get hasScope(): boolean {
    return this.#scope !== undefined;
  }

  get isReleased(): boolean {
    return this.#released;
  }

  get name(): string {
    return this.#lease.grant.request.resource;
  }

  get mode(): LockMode {
    return this.#lease.grant.request.mode;
  }

  get acquisitionId(): string {
    return this.#lease.grant.request.acquisitionId;
  }

  get fencingToken(): bigint | undefined {
    return this.#lease.grant.fencingToken;
  }

  get holdCount(): number {
    return this.#lease.holdCount;
  }

  get validForMs(): number {
    if (this.#released || this.#lease.lost !== undefined) return 0;
    return Math.max(0, this.#lease.deadline - this.core.now());
  }

  get signal(): AbortSignal {
    // Each read of it reads the clock.
    const own = this.#lease.signal;
    if (this.#callers === undefined) return own;
    return (this.#signal ??= AbortSignal.any([own, this.#callers]));
  }

  /** Lets the signal of the caller of a `run` abort the one that the work sees. */
  follow(callers: AbortSignal | undefined): this {
    this.#callers = callers;
    return this;
  }

  assertValid(minRemainingMs = 0): void {
    readRemaining(minRemainingMs, 'assertValid(): minRemainingMs');
    this.assertHeld();
    const left = this.validForMs;
    if (left > minRemainingMs) return;
    throw this.core.error(
      'LOCK_EXPIRES_SOON',
      `The lease on ${quote(this.name)} is valid for ${Math.floor(left)} ms more; ` +
        `more than ${minRemainingMs} ms were asked for. Renew it, or use a longer ttlMs.`,
      this.name,
    );
  }

  async renew(ttlMs?: number): Promise<void> {
    this.assertHeld();
    await renewNow(this.core, this.#lease, ttlMs);
  }

  async downgrade(): Promise<void> {
    this.assertHeld();
    await downgrade(this.core, this.#lease);
    this.assertHeld();
  }

  release(): Promise<void> {
    if (!this.#released) {
      this.#released = true;
      this.#releasing = releaseTracing.hasSubscribers
        ? traced(releaseTracing, this.#trace, () => this.#release())
        : this.#release();
    }
    // `#releasing` is not set yet where this very release finds the loss, and a listener of the loss releases too.
    return this.#releasing ?? Promise.reject(this.#lease.lost);
  }

  /** Ends the handle, before the store is asked to keep the hold for another process (docs/spec.md §19.1). */
  transfer(): void {
    this.#released = true;
    this.#end = 'transferred';
    this.#releasing = Promise.resolve();
    this.#leave();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The caller of an earlier release was told of a loss.
    const isTold = this.#released;
    const loss = await releaseQuietly(this);
    // A block that ends in silence counts as one that held the lock until its end (docs/spec.md §3.4). Where the block has thrown,
    // JavaScript's SuppressedError has both errors.
    if (loss !== undefined && !isTold) throw loss;
  }

  /** The output of `console.log`: all that is known of the lease without asking the store. */
  [inspect.custom](): object {
    const { name, mode, acquisitionId, fencingToken, isReleased: released } = this;
    const validForMs = Math.floor(this.validForMs);
    return { name, mode, acquisitionId, fencingToken, validForMs, released, lost: this.#lease.lost?.reason };
  }

  /** The JSON form: the output of `console.log` with the token as a decimal string. */
  toJSON(): object {
    return withPlainToken(this[inspect.custom]());
  }

  get #trace(): LockTrace {
    const { name, mode, fencingToken } = this;
    return { name, backend: this.core.backendName, mode, fencingToken };
  }

  assertHeld(): void {
    if (this.#released) {
      throw this.core.error('LOCK_NOT_HELD', `The lease on ${quote(this.name)} was ${this.#end}.`, this.name);
    }
    const lost = this.#lease.lost;
    if (lost !== undefined) throw lost;
  }

  #release(): Promise<void> {
    const lease = this.#lease;
    this.#leave();
    if (lease.holdCount === 0) return this.core.release(lease);
    return lease.lost === undefined ? Promise.resolve() : Promise.reject(lease.lost);
  }

  #leave(): void {
    this.#lease.holdCount -= 1;
    if (this.#entered === undefined) this.#scope?.closeToEntries();
    else this.#entered.leaveWhenEmpty();
  }
}
