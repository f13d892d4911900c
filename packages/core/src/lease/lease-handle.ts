import { inspect } from 'node:util';
import { milliseconds } from '../backend/read-options.ts';
import type { LockMode } from '../backend/types.ts';
import { quote } from '../errors.ts';
import { type LockTrace, publish, releaseTracing, traced } from '../events.ts';
import type { BaseLease } from '../lease.ts';
import type { ManagerCore } from '../manager-core.ts';
import { MAX_TTL_MS } from '../options.ts';
import { withPlainToken } from '../readable-state.ts';
import { Scope } from '../scope/scope.ts';
import { identity } from '../lifetime/lease-monitor.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import { downgrade } from './downgrade.ts';
import { renewNow } from './renew-now.ts';

const readRemaining = milliseconds(0, MAX_TTL_MS);

/** The last step of an acquire: a caller who aborted in the very moment of the grant does not hold (docs/spec.md §2.3). */
export function releaseIfAborted<L extends AsyncDisposable>(lease: L, signal: AbortSignal | undefined): L {
  if (!signal?.aborted) return lease;
  // The release runs in the background: the rejection does not wait for it.
  void lease[Symbol.asyncDispose]();
  throw signal.reason;
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

  constructor(core: ManagerCore, lease: LeaseState, entered?: Scope) {
    this.core = core;
    this.#lease = lease;
    this.#entered = entered;
    this.#scope = entered;
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
      const scope = new Scope(this.#lease);
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
    return this.#lease.signal;
  }

  assertValid(minRemainingMs = 0): void {
    readRemaining(minRemainingMs, 'assertValid(): minRemainingMs');
    this.assertHeld();
    const left = this.validForMs;
    if (left > minRemainingMs) return;
    throw this.core.error(
      'LOCK_LOST',
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

  /** Ends the handle and the lease of this process; the store keeps the hold until its end (docs/spec.md §19.1). */
  handOver(): void {
    this.#released = true;
    this.#end = 'handed over';
    this.#releasing = Promise.resolve();
    this.#leave();
    this.core.relinquish(this.#lease);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      // A loss thrown here would hide the error of the block that is being left (docs/spec.md §3.4). Any other error of the
      // release was published already.
      if (error === this.#lease.lost) publish('locks:release-failed', { ...identity(this.#lease), error });
    }
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
    const { name: resource, mode, fencingToken } = this;
    return { resource, backend: this.core.backendName, mode, fencingToken };
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
