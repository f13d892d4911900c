import type { Holder, LockMode, Waiter } from '@locks/core/backend';

/** The kinds of modes, in the order of their numbers in schema-1.sql. */
const KINDS: readonly LockMode['kind'][] = ['exclusive', 'shared', 'permit'];

/** The bytes of a name, since SQLite's text ends at a NUL for some of its functions. */
export function nameBytes(name: string): Uint8Array {
  return Buffer.from(name, 'utf8');
}

/** Converts milliseconds to microseconds, rounded up: a lease in the file never ends before its holder believes. */
export function toMicros(ms: number): number {
  // The limit is 2^52: added to any clock reading it gives a number that SQLite and JavaScript both hold exactly.
  return Math.min(Math.ceil(ms * 1000), 2 ** 52);
}

export function tokenOf(row: SqliteRow): bigint {
  return BigInt(String(row.token));
}

export function modeColumns(mode: LockMode): [kind: number, weight: number, permits: number] {
  return mode.kind === 'permit'
    ? [KINDS.indexOf('permit'), mode.weight, mode.limit]
    : [KINDS.indexOf(mode.kind), 1, 1];
}

/** A row as `node:sqlite` gives it. */
export type SqliteRow = Readonly<Record<string, unknown>>;

export function toMode(row: SqliteRow): LockMode {
  const kind = KINDS[Number(row.kind)] ?? 'exclusive';
  return kind === 'permit' ? { kind, weight: Number(row.weight), limit: Number(row.permits) } : { kind };
}

function named(row: SqliteRow) {
  return {
    acquisitionId: String(row.acquisition_id),
    mode: toMode(row),
    ...(typeof row.label === 'string' && { label: row.label }),
  };
}

export function toHolder(row: SqliteRow, now: number): Holder {
  return {
    ...named(row),
    fencingToken: tokenOf(row),
    heldForMs: Math.max(0, (now - Number(row.granted_at)) / 1000),
    expiresInMs: (Number(row.expires_at) - now) / 1000,
  };
}

export function toWaiter(row: SqliteRow, now: number): Waiter {
  return {
    ...named(row),
    waitingForMs: Math.max(0, (now - Number(row.enqueued_at)) / 1000),
  };
}
