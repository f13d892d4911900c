/** From advisory locks of PostgreSQL by hand, a connection for each, to the lease table of `@locks/postgres`. */
import { createLocks } from '@locks/core';
import { postgresLeaseBackend } from '@locks/postgres';
import type { Pool } from 'pg';
import type { RunLocked } from './run-locked.ts';

export function before(pool: Pool): RunLocked {
  return async (name, work) => {
    const client = await pool.connect();
    try {
      await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [name]);
      try {
        return await work();
      } finally {
        await client.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [name]);
      }
    } finally {
      client.release();
    }
  };
}

export function after(pool: Pool): RunLocked & AsyncDisposable {
  const locks = createLocks(postgresLeaseBackend(pool), { waitMs: 20_000 });
  const run: RunLocked = (name, work) => locks.lock(name).run(work);
  return Object.assign(run, { [Symbol.asyncDispose]: () => locks.close() });
}
