import { isTransferred, shownId } from '../acquire/acquisition-id.ts';
import { AcquireLoop } from '../acquire/acquire-loop.ts';
import { checkManager } from '../backend/check-manager.ts';
import type { OptionTable } from '../backend/read-options.ts';
import { internalsOf } from '../compose/multi-lock.ts';
import type { LockManager } from '../create-locks.ts';
import { mustBe, quote } from '../errors.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { LeaseHandle, releaseIfAborted } from '../lease/lease-handle.ts';
import type { Lock } from '../lock.ts';
import { type AcquireOptions, ALL_TABLE, resolveOptions } from '../options.ts';
import { type TransferTicket, readTicket } from './ticket.ts';

/** Options of {@link adopt}: those of an acquire that concern the lease, and how long the store may take to answer. */
export interface AdoptOptions extends Pick<AcquireOptions, 'renewal' | 'maxHoldMs' | 'label'> {
  /**
   * The ttl of the adopted lease, in milliseconds.
   * @defaultValue that of the ticket
   */
  readonly ttlMs?: number | undefined;
  /**
   * How long the call may take to get the lease, in milliseconds: for so long a store that fails is asked again. An adoption never waits
   * for another holder.
   * @defaultValue 10 000, or the manager's
   */
  readonly waitMs?: number | undefined;
  /** Ends the call with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

const ADOPT_TABLE = ALL_TABLE satisfies OptionTable<AdoptOptions>;

// setup: import type { FencedLockManager } from '@locks/core'; import { adopt, type TransferTicket } from '@locks/core/transfer';
// setup: declare const locks: FencedLockManager; declare function resize(token: bigint): Promise<void>;
// setup: declare const job: { readonly data: { readonly ticket: TransferTicket } };
/**
 * Continues a lease that another process, or another manager, has transferred: in one step of the store, ahead of the queue, with a
 * higher fencing token. A ticket can be adopted once.
 *
 * @throws LockError `LOCK_NOT_HELD` when the lease was adopted before, ended by its ttl, was taken from the ticket's holder, or was not handed
 * over with this ticket;
 * `LOCK_BACKEND` without an answer (the ticket may be used up: the lease then ends by its ttl); `LOCK_UNSUPPORTED` on a backend
 * without the feature `transfer`; `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`; the reason of `signal` when it aborts
 * @example
 * ```ts
 * await using lease = await adopt(locks, job.data.ticket);
 * await resize(lease.fencingToken);
 * ```
 */
export async function adopt<L extends BaseLease = Lease>(
  locks: LockManager<L>,
  ticket: TransferTicket,
  options?: AdoptOptions,
): Promise<L> {
  checkManager('adopt(): the first argument', locks);
  const { name, acquisitionId, ttlMs, endsAt } = readTicket(ticket);
  const lock = locks.lock(name, { ttlMs }) as Lock<BaseLease>;
  const internals = internalsOf(lock as Lock);
  if (internals === undefined) throw mustBe('adopt(): the lock manager', 'one of this copy of core', locks);
  const { core } = internals;
  const { features, ttl, expiry } = core.backend.capabilities;
  const startedAt = core.clock.now();
  const resolved = resolveOptions(ADOPT_TABLE, internals.options, options, ttl, 'adopt()');
  resolved.signal?.throwIfAborted();
  core.assertOpen(name);
  if (!features.includes('transfer')) throw core.unsupported('transfer', name);
  const notHeld = (why: string) => {
    const says = `The lease on ${quote(name)} of the ticket ${shownId(acquisitionId)} cannot be adopted: ${why}.`;
    return core.error('LOCK_NOT_HELD', says, name);
  };
  // The id of a lease that is held, as `inspect` shows it, is no ticket (docs/spec.md §19.2).
  if (!isTransferred(acquisitionId))
    throw notHeld('it was not transferred; pass the ticket that transfer() gave');
  // Such a store may show the hold to a client that comes later than its end (docs/spec.md §19.3).
  if (expiry !== undefined && Date.now() >= (endsAt ?? Number.POSITIVE_INFINITY))
    throw notHeld(`its ${ttlMs} ms are over`);
  const loop = new AcquireLoop(
    core,
    name,
    lock.mode,
    { ...resolved, adopts: acquisitionId },
    startedAt,
    resolved.waitMs > 0,
  );
  const lease = await loop.run();
  if (lease === undefined)
    throw notHeld(`it was adopted before, its ${ttlMs} ms are over, or it was taken from its holder`);
  return releaseIfAborted(new LeaseHandle(core, lease, undefined), resolved.signal) as BaseLease as L;
}
