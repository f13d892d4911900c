import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LockError } from '@locks/core';
import { ask } from '../driver/ask.ts';
import type { Connection, OwnConnection } from '../driver/postgres-driver.ts';
import { halvesOf, isLock } from './pg-locks.ts';

/** The time for a reset: a pooler that lends whole sessions needs much less to reset a session after its client left. */
const RESET_MS = 1_000;
const QUERY_EVERY_MS = 20;
/** The most sessions of the pooler in which a lock that stayed is looked for. */
const MOST_SESSIONS = 16;

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
    for (;;) {
      const where = await whereIs(second, key);
      if (where === 'nowhere') return;
      if (where === 'elsewhere' && performance.now() < until) await delay(QUERY_EVERY_MS);
      else if (where === 'elsewhere') {
        await unlock(connect, key).catch(() => undefined);
        throw refusal();
      } else throw refusal();
    }
  } finally {
    void second.end();
  }
}

/** Finds the session that holds the lock; where it is this one, the lock is released. */
async function whereIs(connection: Connection, key: string): Promise<'nowhere' | 'elsewhere' | 'here'> {
  const halves = halvesOf(key);
  // One statement finds and releases it: the pooler may lend another session for the next one.
  const [released] = await ask(connection, {
    text: `SELECT pg_catalog.pg_advisory_unlock($1::bigint) FROM pg_catalog.pg_locks
           WHERE ${isLock('$2', '$3')} AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()`,
    values: [key, ...halves],
  });
  if (released !== undefined) return 'here';
  const [held] = await ask(connection, {
    text: `SELECT 1 FROM pg_catalog.pg_locks WHERE ${isLock('$1', '$2')}`,
    values: [...halves],
  });
  return held === undefined ? 'nowhere' : 'elsewhere';
}

/** Releases the lock in the session of the pooler that holds it: open transactions keep one session after the other. */
async function unlock(connect: () => Promise<OwnConnection>, key: string): Promise<void> {
  const kept: OwnConnection[] = [];
  try {
    while (kept.length < MOST_SESSIONS) {
      const connection = await connect();
      kept.push(connection);
      await ask(connection, { text: 'BEGIN' });
      if ((await whereIs(connection, key)) !== 'elsewhere') return;
    }
  } finally {
    for (const connection of kept) void connection.end();
  }
}

function refusal(): LockError {
  return new LockError(
    'LOCK_UNSUPPORTED',
    '@locks/postgres: the connection goes through a pooler that lends sessions to several clients (PgBouncer with ' +
      'pool_mode = transaction or statement). Advisory locks would be left behind and shared. Connect to PostgreSQL ' +
      'directly or with pool_mode = session, or use postgresLeaseBackend, which works through such a pooler.',
  );
}
