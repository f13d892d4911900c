import { type OptionTable, readOptions } from '../backend/read-options.ts';
import { mustBe, quote } from '../errors.ts';
import type { BaseLease } from '../lease.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import { renewNow } from '../lease/renew-now.ts';
import { checkTtl } from '../options.ts';
import type { HandOverTicket } from './ticket.ts';

/** Options of {@link handOver}. */
export interface HandOverOptions {
  /**
   * How long the store keeps the lease for the process that adopts it, in milliseconds.
   * @defaultValue the ttl of the lease
   */
  readonly ttlMs?: number | undefined;
}

const HAND_OVER_TABLE = { ttlMs: (value) => value } satisfies OptionTable<HandOverOptions>;

// setup: import type { Lease } from '@locks/core'; import { handOver } from '@locks/core/hand-over';
// setup: declare const lease: Lease; declare const queue: { add(name: string, data: object): Promise<void> };
/**
 * Hands an exclusive lease over to another process: renews it once more, ends it here, and gives a ticket with which
 * {@link adopt} continues it there (docs/spec.md §19). From then on this process neither renews nor releases it: the handle
 * counts as released.
 *
 * A ticket that nobody adopts ends with the lease, after `ttlMs`.
 *
 * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`; `LOCK_BACKEND` when the store did not confirm the renewal (the lease stays
 * here); `LOCK_REENTRANT` while other handles are not released; `LOCK_UNSUPPORTED` for shared leases and permits, and on a backend
 * without the feature `hand-over`; `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`
 * @example
 * ```ts
 * await queue.add('resize', { ticket: await handOver(lease) });
 * ```
 */
export async function handOver(lease: BaseLease, options?: HandOverOptions): Promise<HandOverTicket> {
  const handle = LeaseHandle.of(lease);
  if (handle === undefined) throw mustBe('handOver(): the lease', 'a lease of one lock', lease);
  const { core, lease: state, name } = handle;
  const { ttlMs } = readOptions('handOver()', options, HAND_OVER_TABLE);
  const { features, ttl } = core.backend.capabilities;
  const wantedMs = ttlMs === undefined ? state.ttlMs : checkTtl(ttlMs, ttl, 'handOver(): ttlMs');
  handle.assertHeld();
  if (!features.includes('hand-over')) throw core.unsupported('hand-over', name);
  if (handle.mode.kind !== 'exclusive')
    throw core.unsupported(`hand-over of a ${handle.mode.kind} lease`, name);
  assertAlone(handle);
  await renewNow(core, state, wantedMs);
  // It may have been released, re-entered or handed over meanwhile.
  handle.assertHeld();
  assertAlone(handle);
  handle.handOver();
  const { acquisitionId, fencingToken } = handle;
  const token = fencingToken === undefined ? {} : { fencingToken: String(fencingToken) };
  return { version: 1, name, acquisitionId, ...token, ttlMs: wantedMs };
}

function assertAlone({ core, holdCount, name }: LeaseHandle): void {
  if (holdCount === 1) return;
  throw core.error(
    'LOCK_REENTRANT',
    `The lease on ${quote(name)} has ${holdCount} handles; release the others before handOver().`,
    name,
  );
}
