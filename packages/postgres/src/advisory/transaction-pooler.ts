import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LockError } from '@locks/core';
import type pg from 'pg';
import { endConnection } from '../pool/own-connection.ts';
import { halvesOf } from './advisory-key.ts';

/** A pooler that lends whole sessions cleans up after a client in much less. */
const CLEANING_MS = 1_000;
const LOOK_EVERY_MS = 20;

/**
 * Finds out whether a session lock ends with the client that took it, by doing it once: a client locks a random key and
 * leaves. Behind a pooler that lends connections for single transactions, or that does not reset them, the lock stays.
 *
 * @throws LockError `LOCK_UNSUPPORTED` where it stays
 */
export async function refuseTransactionPooler(connect: () => Promise<pg.Client>): Promise<void> {
  const key = String(randomBytes(8).readBigInt64BE());
  const first = await connect();
  try {
    await first.query('SELECT pg_try_advisory_lock($1::int8)', [key]);
  } finally {
    await first.end().catch(() => undefined);
  }
  const second = await connect();
  try {
    const until = performance.now() + CLEANING_MS;
    while (await stays(second, key)) {
      if (performance.now() < until) await delay(LOOK_EVERY_MS);
      else throw refusal();
    }
  } finally {
    endConnection(second);
  }
}

async function stays(client: pg.Client, key: string): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>(
    `SELECT bool_or(pid = pg_backend_pid()) AS mine FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 1 AND classid = $1::oid AND objid = $2::oid
     HAVING count(*) > 0`,
    [...halvesOf(key)],
  );
  if (rows[0] === undefined) return false;
  if (!rows[0].mine) return true;
  // The very session that another client left behind: it is ours for a moment, so we clear it.
  await client.query(
    `SELECT pg_advisory_unlock($1::int8) FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 1 AND classid = $2::oid AND objid = $3::oid AND pid = pg_backend_pid()`,
    [key, ...halvesOf(key)],
  );
  throw refusal();
}

function refusal(): LockError {
  return new LockError(
    'LOCK_UNSUPPORTED',
    '@locks/postgres: the connection goes through a pooler that lends sessions to several clients (PgBouncer with ' +
      'pool_mode = transaction or statement). Advisory locks would be left behind and shared. Connect to PostgreSQL ' +
      'directly or with pool_mode = session, or use postgresLeaseBackend, which works through such a pooler.',
  );
}
