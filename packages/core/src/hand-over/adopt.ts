import { AcquireLoop } from '../acquire/acquire-loop.ts';
import type { OptionTable } from '../backend/read-options.ts';
import { partsOf } from '../compose/multi-lock.ts';
import type { LockManager } from '../create-locks.ts';
import { mustBe, quote } from '../errors.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { LeaseHandle, releaseIfAborted } from '../lease/lease-handle.ts';
import type { Lock } from '../lock.ts';
import { type AcquireOptions, ALL_TABLE, resolveOptions } from '../options.ts';
import { type HandOverTicket, readTicket } from './ticket.ts';

/** Options of {@link adopt}: those of an acquire that concern the lease, and how long the store may take to answer. */
export interface AdoptOptions extends Pick<AcquireOptions, 'renewal' | 'maxHoldMs' | 'label'> {
  /**
   * The ttl of the adopted lease, in milliseconds.
   * @defaultValue that of the ticket
   */
  readonly ttlMs?: number | undefined;
  /**
   * How long a store that fails is asked again, in milliseconds. An adoption never waits for the lock.
   * @defaultValue 10 000, or the manager's
   */
  readonly waitMs?: number | undefined;
  /** Ends the call with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

const ADOPT_TABLE = ALL_TABLE satisfies OptionTable<AdoptOptions>;

// setup: import type { FencedLockManager } from '@locks/core'; import { adopt, type HandOverTicket } from '@locks/core/hand-over';
// setup: declare const locks: FencedLockManager; declare function resize(token: bigint): Promise<void>;
// setup: declare const job: { readonly data: { readonly ticket: HandOverTicket } };
/**
 * Continues a lease that another process, or another manager, has handed over: in one step of the store, ahead of the queue, with a
 * higher fencing token. A ticket can be adopted once.
 *
 * @throws LockError `LOCK_NOT_HELD` when the lease was adopted before, ended by its ttl, or was taken from the ticket's holder;
 * `LOCK_BACKEND` without an answer (the ticket may be used up: the lease then ends by its ttl); `LOCK_UNSUPPORTED` on a backend
 * without the feature `hand-over`; `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`; the reason of `signal` when it aborts
 * @example
 * ```ts
 * await using lease = await adopt(locks, job.data.ticket);
 * await resize(lease.fencingToken);
 * ```
 */
export async function adopt<L extends BaseLease = Lease>(
  locks: LockManager<L>,
  ticket: HandOverTicket,
  options?: AdoptOptions,
): Promise<L> {
  const { name, acquisitionId, ttlMs } = readTicket(ticket);
  if (typeof (locks as Partial<LockManager> | null)?.lock !== 'function')
    throw mustBe('adopt(): the first argument', 'a lock manager', locks);
  const lock = locks.lock(name, { ttlMs }) as Lock<BaseLease>;
  const parts = partsOf(lock as Lock);
  if (parts === undefined) throw mustBe('adopt(): the lock manager', 'one of this copy of core', locks);
  const { core } = parts;
  const { features, ttl } = core.backend.capabilities;
  const startedAt = core.clock.now();
  const resolved = resolveOptions(ADOPT_TABLE, parts.options, options, ttl, 'adopt()');
  resolved.signal?.throwIfAborted();
  core.assertOpen(name);
  if (!features.includes('hand-over')) throw core.unsupported('hand-over', name);
  const loop = new AcquireLoop(core, name, lock.mode, { ...resolved, adopts: acquisitionId }, startedAt);
  const lease = await loop.run();
  if (lease !== undefined)
    return releaseIfAborted(new LeaseHandle(core, lease), resolved.signal) as BaseLease as L;
  throw core.error(
    'LOCK_NOT_HELD',
    `The lease on ${quote(name)} of the ticket ${acquisitionId} is not held any more: it was adopted before, its ${ttlMs} ms ` +
      'are over, or it was taken from its holder.',
    name,
  );
}
