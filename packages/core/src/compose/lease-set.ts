import { isLockError, type LockError } from '../errors.ts';
import type { Lease } from '../lease.ts';
import { releaseQuietly } from '../run.ts';
import type { MultiLease } from './multi-lock.ts';

/** Several leases as one: as good as the worst of them (docs/spec.md §16.3). */
export class LeaseSet implements MultiLease {
  readonly leases: readonly Lease[];
  #signal: AbortSignal | undefined;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  get validForMs(): number {
    return Math.min(...this.leases.map((lease) => lease.validForMs));
  }

  get signal(): AbortSignal {
    const signals = this.leases.map((lease) => lease.signal);
    return (this.#signal ??= AbortSignal.any(signals));
  }

  assertValid(minRemainingMs?: number): void {
    for (const lease of this.leases) lease.assertValid(minRemainingMs);
  }

  async renew(ttlMs?: number): Promise<void> {
    await allOf(this.leases.map(async (lease) => lease.renew(ttlMs)));
  }

  async release(): Promise<void> {
    await allOf(this.leases.map(async (lease) => lease.release()));
  }

  /** Releases all leases; returns the first loss that the releases find. An event reports releases without an answer. */
  async releaseQuietly(): Promise<LockError | undefined> {
    const losses = await Promise.all(this.leases.map(releaseQuietly));
    return losses.find((loss) => loss !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Events report losses and releases without an answer, as for a single lease (docs/spec.md §3.4).
    await Promise.allSettled(this.leases.map(async (lease) => lease[Symbol.asyncDispose]()));
  }
}

/** Waits for all; throws the loss of one before any other error. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const errors = (await Promise.allSettled(works)).flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  if (errors.length > 0) throw errors.find((error) => isLockError(error, 'LOCK_LOST')) ?? errors[0];
}
