import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LockError } from '@locks/core';
import { ask } from '../driver/ask.ts';
import type { Connection, OwnConnection } from '../driver/postgres-driver.ts';
import { halvesOf, isLock } from './pg-locks.ts';

/** The time for a reset: a pooler that lends whole sessions needs much less to reset a session after its client left. */
const RESET_MS = 1_000;
const QUERY_EVERY_MS = 20;

/**
 * Tests whether a session lock ends with the client that took it: one client locks a random key and leaves, and another asks
 * for the lock. Behind a pooler that lends connections for single transactions, or does not reset them, the lock stays.
 *
 * @throws LockError `LOCK_UNSUPPORTED` where it stays
 */
export async function refuseTransactionPooler(connect: () => Promise<OwnConnection>): Promise<void> {
  const key = String(randomBytes(8).readBigInt64BE());
  const first = await connect();
  try {
    await ask(first, { text: 'SELECT pg_catalog.pg_try_advisory_lock($1::bigint)', values: [key] });
  } finally {
    await first.end();
  }
  const second = await connect();
  try {
    const until = performance.now() + RESET_MS;
    while (await stays(second, key)) {
      if (performance.now() < until) await delay(QUERY_EVERY_MS);
      else throw refusal();
    }
  } finally {
    void second.end();
  }
}

async function stays(connection: Connection, key: string): Promise<boolean> {
  const [row] = await ask(connection, {
    text: `SELECT pg_catalog.bool_or(pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())
           FROM pg_catalog.pg_locks WHERE ${isLock('$1', '$2')} HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 0`,
    values: [...halvesOf(key)],
  });
  if (row === undefined) return false;
  const [isMine] = row;
  if (isMine !== 't') return true;
  // The pooler has given us the very session that holds the lock: it is released.
  await ask(connection, {
    text: `SELECT pg_catalog.pg_advisory_unlock($1::bigint) FROM pg_catalog.pg_locks
           WHERE ${isLock('$2', '$3')} AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()`,
    values: [key, ...halvesOf(key)],
  });
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
