import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { OutgoingStatement, StatementResult } from '../driver/postgres-statements.ts';
import type { LeaseSql } from './lease-sql.ts';
import type { LeaseStatements } from './lease-statements.ts';
import type { NotifiedWaiters } from './notified-waiters.ts';
import { nameBytes } from './name-bytes.ts';

/** A grant of the plain insert. Its release is a plain delete, as long as nobody has queued meanwhile. */
interface UncontendedGrant extends Grant {
  readonly uncontended: true;
}

/** Whether the plain statements are worth a try: they are prepared, and nobody of this backend waits for the name. */
export function mayBeUncontended(
  { mode, steal, resource }: AcquireRequest,
  { isPrepared }: LeaseStatements,
  { known }: NotifiedWaiters,
): boolean {
  return mode.kind === 'exclusive' && steal !== true && isPrepared && known.countOf(resource) === 0;
}

/** The plain insert of an exclusive lock that nobody else wants. */
export function insertStatement(sql: LeaseSql, request: AcquireRequest, call: Call): OutgoingStatement {
  const { resource, acquisitionId, ttlMs, label } = request;
  const sentAt = call.now();
  const values = [nameBytes(resource), acquisitionId, ttlMs, label];
  return { text: sql.plainInsert, values, sentAt, leftMs: call.deadline - sentAt };
}

/** The grant, or `undefined` when there is a row of this name already. */
export function toUncontendedGrant(
  request: AcquireRequest,
  { rows, sentAt }: StatementResult,
): UncontendedGrant | undefined {
  const token = rows[0]?.[0];
  if (token === undefined || token === null) return undefined;
  return { request, fencingToken: BigInt(token), countedFrom: sentAt, uncontended: true };
}

export function isUncontended(grant: Grant): boolean {
  return (grant as Partial<UncontendedGrant>).uncontended === true;
}
