import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Contender, POLL_MS, TTL_MS } from './contender.ts';

/** Processes create the table at the same time; `IF NOT EXISTS` alone does not keep the second one from failing. */
const CREATE_TABLE = `SELECT pg_advisory_lock(1);
CREATE TABLE IF NOT EXISTS raw_leases (
  name bytea PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL);
SELECT pg_advisory_unlock(1)`;

const TAKE = `INSERT INTO raw_leases VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
WHERE raw_leases.expires_at <= clock_timestamp()`;

const GIVE_BACK = 'DELETE FROM raw_leases WHERE name = $1 AND owner = $2';

/** The minimal lease: a table, one prepared statement to acquire and one to release, on a pool. No token. */
export const rawPostgresLease: Contender = {
  store: 'postgres',
  name: 'raw lease table',
  kind: 'floor',
  floor: 'raw lease table',
  packages: ['pg'],
  async open(url) {
    const pool = new pg.Pool({ connectionString: url });
    await pool.query(CREATE_TABLE);
    return {
      async acquire(resource) {
        const name = Buffer.from(resource);
        const owner = randomUUID();
        const take = { name: 'take', text: TAKE, values: [name, owner, TTL_MS] };
        while ((await pool.query(take)).rowCount === 0) await delay(POLL_MS);
        return () => pool.query({ name: 'give-back', text: GIVE_BACK, values: [name, owner] });
      },
      ping: () => pool.query({ name: 'ping', text: 'SELECT 1' }),
      close: () => pool.end(),
    };
  },
};

/** `pg_try_advisory_lock` on one connection; a waiter has a connection of its own, and the server's queue. */
export const rawPostgresAdvisory: Contender = {
  store: 'postgres',
  name: 'raw advisory lock',
  kind: 'floor',
  floor: 'raw advisory lock',
  packages: ['pg'],
  async open(url) {
    const idle = [await connect(url)];
    return {
      async acquire(resource) {
        // A session may acquire a lock again that it holds: each lock needs a session that holds none.
        const client = idle.pop() ?? (await connect(url));
        const values = [keyOf(resource)];
        const tried = await client.query({
          name: 'try',
          text: 'SELECT pg_try_advisory_lock($1::int8) AS taken',
          values,
        });
        if (!(tried.rows[0] as { taken: boolean }).taken) {
          await client.query({ name: 'wait', text: 'SELECT pg_advisory_lock($1::int8)', values });
        }
        return async () => {
          await client.query({ name: 'unlock', text: 'SELECT pg_advisory_unlock($1::int8)', values });
          idle.push(client);
        };
      },
      ping: () => (idle[0] as pg.Client).query({ name: 'ping', text: 'SELECT 1' }),
      close: async () => {
        await Promise.all(idle.map((client) => client.end()));
      },
    };
  },
};

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

function keyOf(name: string): string {
  return String(createHash('sha256').update(name).digest().readBigInt64BE());
}
