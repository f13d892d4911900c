import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Verrou } from '@verrou/core';
import { knexStore } from '@verrou/core/drivers/knex';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import type { ReservedSql } from 'postgres';
import { backends, pgPool, postgresJs } from './clients.ts';
import { type Client, type Contender, foreign, ours, POLL_MS, TTL_MS } from './contender.ts';
import { acquireVerrou } from './verrou.ts';

const store = 'postgres';

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
const rawLease = foreign({ store, name: 'raw lease table', kind: 'floor' }, pgPool, async (pool) => {
  await pool.query(CREATE_TABLE);
  return async (resource) => {
    const name = Buffer.from(resource);
    const owner = randomUUID();
    const take = { name: 'take', text: TAKE, values: [name, owner, TTL_MS] };
    while ((await pool.query(take)).rowCount === 0) await delay(POLL_MS);
    return () => pool.query({ name: 'give-back', text: GIVE_BACK, values: [name, owner] });
  };
});

/** Sessions without a lock, and a way to more of them. */
interface Sessions {
  readonly idle: pg.Client[];
  connect(): Promise<pg.Client>;
}

const sessions: Client<Sessions> = {
  packages: ['pg'],
  async connect(url) {
    const connect = async (): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return client;
    };
    const idle = [await connect()];
    return {
      client: { idle, connect },
      ping: () => (idle[0] as pg.Client).query({ name: 'ping', text: 'SELECT 1' }),
      close: () => Promise.all(idle.map((client) => client.end())),
    };
  },
};

/** `pg_try_advisory_lock` on one connection; a waiter has a connection of its own, and the server's queue. */
const rawAdvisory = foreign(
  { store, name: 'raw advisory lock', kind: 'floor' },
  sessions,
  ({ idle, connect }) =>
    async (resource) => {
      // A session may acquire a lock again that it holds: each lock needs a session that holds none.
      const client = idle.pop() ?? (await connect());
      const values = [String(createHash('sha256').update(resource).digest().readBigInt64BE())];
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
);

/** The same lease by postgres.js, which prepares the statements. */
const rawLeaseOfPostgresJs = foreign(
  { store, name: 'raw lease table, postgres.js', kind: 'floor' },
  postgresJs(),
  async (sql) => {
    await sql.unsafe(CREATE_TABLE);
    return async (resource) => {
      const name = Buffer.from(resource);
      const owner = randomUUID();
      while ((await sql.unsafe(TAKE, [name, owner, TTL_MS], { prepare: true })).count === 0)
        await delay(POLL_MS);
      return () => sql.unsafe(GIVE_BACK, [name, owner], { prepare: true });
    };
  },
);

/** More than one process has waiters: each keeps a connection, and one that waits for a connection would wait for ever. */
const MOST_SESSIONS = 64;

/** The same advisory lock by postgres.js: a lock keeps a connection of the instance. */
const rawAdvisoryOfPostgresJs = foreign(
  { store, name: 'raw advisory lock, postgres.js', kind: 'floor' },
  postgresJs(MOST_SESSIONS),
  (sql) => {
    const idle: ReservedSql[] = [];
    return async (resource) => {
      const session = idle.pop() ?? (await sql.reserve());
      const values = [String(createHash('sha256').update(resource).digest().readBigInt64BE())];
      const ask = (text: string) => session.unsafe(text, values, { prepare: true });
      const [row] = await ask('SELECT pg_try_advisory_lock($1::int8) AS taken');
      if (row?.['taken'] !== true) await ask('SELECT pg_advisory_lock($1::int8)');
      return async () => {
        await ask('SELECT pg_advisory_unlock($1::int8)');
        idle.push(session);
      };
    };
  },
);

const knexClient: Client<Knex> = {
  packages: ['knex', 'pg'],
  async connect(url) {
    const client = knex({ client: 'pg', connection: url });
    return { client, ping: async () => client.raw('SELECT 1'), close: () => client.destroy() };
  },
};

/** Polls every 250 ms by default, without end. Locks expire by the client's clock, and there is no token. */
const verrouKnex = foreign(
  { store, name: '@verrou/core knex', kind: 'peer', floor: 'raw lease table', packages: ['@verrou/core'] },
  knexClient,
  (connection) => {
    const stores = { database: { driver: knexStore({ connection }) } };
    return acquireVerrou(new Verrou({ default: 'database', stores }));
  },
);

export const postgresContenders: readonly Contender[] = [
  rawLease,
  ours({ store, name: '@locks/postgres lease', floor: rawLease.name }, backends['postgres lease']),
  verrouKnex,
  rawAdvisory,
  ours({ store, name: '@locks/postgres advisory', floor: rawAdvisory.name }, backends['postgres advisory']),
  rawLeaseOfPostgresJs,
  ours(
    { store, name: '@locks/postgres lease, postgres.js', floor: rawLeaseOfPostgresJs.name },
    backends['postgres.js lease'],
  ),
  rawAdvisoryOfPostgresJs,
  ours(
    { store, name: '@locks/postgres advisory, postgres.js', floor: rawAdvisoryOfPostgresJs.name },
    backends['postgres.js advisory'],
  ),
];
