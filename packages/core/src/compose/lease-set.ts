import { isLockError, type LockError } from '../errors.ts';
import { type Lease, LeaseHandle } from '../lease.ts';
import { releaseQuietly } from '../run.ts';
import type { MultiLease } from './all.ts';

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
    this.#signal ??= signals.length === 1 ? signals[0] : AbortSignal.any(signals);
    return this.#signal as AbortSignal;
  }

  assertValid(minRemainingMs?: number): void {
    for (const lease of this.leases) lease.assertValid(minRemainingMs);
  }

  async renew(ttlMs?: number): Promise<void> {
    await settled(this.leases.map(async (lease) => lease.renew(ttlMs)));
  }

  async release(): Promise<void> {
    await settled(this.leases.map(async (lease) => lease.release()));
  }

  /** The first loss that comes out. What got no answer is told by an event. */
  async releaseQuietly(): Promise<LockError | undefined> {
    const losses = await Promise.all(this.leases.map(quietly));
    return losses.find((loss) => loss !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What was lost or got no answer is told by an event, as of a single lease (docs/spec.md §3.4).
    await Promise.allSettled(this.leases.map(async (lease) => lease[Symbol.asyncDispose]()));
  }
}

async function quietly(lease: Lease): Promise<LockError | undefined> {
  const own = LeaseHandle.of(lease);
  if (own !== undefined) return releaseQuietly(own);
  try {
    await lease.release();
    return undefined;
  } catch (error) {
    return isLockError(error, 'LOCK_LOST') ? error : undefined;
  }
}

/** Waits for all; throws the loss of one before any other error. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  const errors = (await Promise.allSettled(works)).flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  if (errors.length > 0) throw errors.find((error) => isLockError(error, 'LOCK_LOST')) ?? errors[0];
}
