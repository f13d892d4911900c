import { isLockError, type LockError } from '../errors.ts';
import type { Lease } from '../lease.ts';
import { releaseQuietly } from '../lease/release-quietly.ts';
import type { MultiLease } from './multi-lock.ts';

/** Several leases as one: as good as the worst of them (docs/spec.md §16.3). */
export class MultiLeaseHandle implements MultiLease {
  readonly leases: readonly Lease[];
  #signal: AbortSignal | undefined;
  #isReleased = false;
  #callers: AbortSignal | undefined;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  /** Lets the signal of the caller of a `run` abort the one that the work sees. */
  follow(callers: AbortSignal | undefined): this {
    this.#callers = callers;
    return this;
  }

  get validForMs(): number {
    return Math.min(...this.leases.map((lease) => lease.validForMs));
  }

  get signal(): AbortSignal {
    const signals = this.leases.map((lease) => lease.signal);
    return (this.#signal ??= AbortSignal.any(
      this.#callers === undefined ? signals : [...signals, this.#callers],
    ));
  }

  assertValid(minRemainingMs?: number): void {
    for (const lease of this.leases) lease.assertValid(minRemainingMs);
  }

  async renew(ttlMs?: number): Promise<void> {
    await allOf(this.leases.map(async (lease) => lease.renew(ttlMs)));
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    await allOf(this.leases.map(async (lease) => lease.release()));
  }

  /** Releases all leases; returns the first loss that the releases find. An event reports releases without an answer. */
  async releaseQuietly(): Promise<LockError | undefined> {
    const losses = await Promise.all(this.leases.map(releaseQuietly));
    return losses.find((loss) => loss !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The caller of an earlier release was told of a loss. An event reports releases without an answer (docs/spec.md §3.4).
    const isTold = this.#isReleased;
    const loss = await this.releaseQuietly();
    if (loss !== undefined && !isTold) throw loss;
  }
}

/** Waits for all; throws the loss of one before any other error. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const errors = (await Promise.allSettled(works)).flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  if (errors.length > 0) throw errors.find((error) => isLockError(error, 'LOCK_LOST')) ?? errors[0];
}
