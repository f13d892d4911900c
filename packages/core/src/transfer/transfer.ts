import { transferredId } from '../acquire/acquisition-id.ts';
import { type OptionTable, readOptions } from '../backend/read-options.ts';
import { quote } from '../errors.ts';
import type { BaseLease } from '../lease.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import { notOwnLease } from '../lease/not-own-lease.ts';
import { checkTtl } from '../options.ts';
import type { TransferTicket } from './ticket.ts';

/** Options of {@link transfer}. */
export interface TransferOptions {
  /**
   * How long the store keeps the lease for the process that adopts it, in milliseconds.
   * @defaultValue the ttl of the lease
   */
  readonly ttlMs?: number | undefined;
}

const TRANSFER_TABLE = { ttlMs: (value) => value } satisfies OptionTable<TransferOptions>;

// setup: import type { Lease } from '@locks/core'; import { transfer } from '@locks/core/transfer';
// setup: declare const lease: Lease; declare const queue: { add(name: string, data: object): Promise<void> };
/**
 * Transfers an exclusive lease to another process: ends it here, and gives a ticket with which {@link adopt} continues it there
 * (docs/spec.md §19). From the call on this process neither renews nor releases it: the handle counts as released. The store keeps the
 * lease for `ttlMs` under an id of which only the ticket has the secret part; a ticket that nobody adopts ends with it.
 *
 * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`; `LOCK_BACKEND` when the store gave no answer (the lease is over here, and given up in the
 * store); `LOCK_REENTRANT` while other handles are not released; `LOCK_UNSUPPORTED` for shared leases and permits, and on a backend
 * without the feature `transfer`; `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`
 * @example
 * ```ts
 * await queue.add('resize', { ticket: await transfer(lease) });
 * ```
 */
export async function transfer(lease: BaseLease, options?: TransferOptions): Promise<TransferTicket> {
  const handle = LeaseHandle.of(lease);
  if (handle === undefined) throw notOwnLease('transfer(): the lease', lease);
  const { core, lease: state, name } = handle;
  const { ttlMs } = readOptions('transfer()', options, TRANSFER_TABLE);
  const { features, ttl } = core.backend.capabilities;
  const wantedMs = ttlMs === undefined ? state.ttlMs : checkTtl(ttlMs, ttl, 'transfer(): ttlMs');
  handle.assertHeld();
  if (!features.includes('transfer')) throw core.unsupported('transfer', name);
  if (handle.mode.kind !== 'exclusive')
    throw core.unsupported(`transfer of a ${handle.mode.kind} lease`, name);
  assertAlone(handle);
  const { acquisitionId: former, label, mode } = state.grant.request;
  const acquisitionId = transferredId(former);
  const request = { resource: name, acquisitionId, mode, ttlMs: wantedMs, adopts: former };
  const endsAt = Date.now() + wantedMs;
  // Before the request is sent: the store may give the hold to the ticket at any moment from now (docs/spec.md §19.1).
  handle.transfer();
  const { fencingToken } = await core.transfer(state, { ...request, ...(label !== undefined && { label }) });
  const token = fencingToken === undefined ? {} : { fencingToken: String(fencingToken) };
  return { version: 1, name, acquisitionId, ...token, ttlMs: wantedMs, endsAt };
}

function assertAlone({ core, holdCount, name }: LeaseHandle): void {
  if (holdCount === 1) return;
  throw core.error(
    'LOCK_REENTRANT',
    `The lease on ${quote(name)} has ${holdCount} handles; release the others before transfer().`,
    name,
  );
}
