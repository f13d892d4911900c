import { createLocks, type LockManager } from '@locks/core';
import { startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { postgresAdvisoryBackend } from '../src/index.ts';

/** The first number of the key of every mark. */
const MARK = 0x4c4f434b;

let server: Awaited<ReturnType<typeof startPostgres>>;
let count = 0;
/** The address of a database that no other test uses: each has marks of its own. */
let url: string;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const name = `layout${(count += 1)}`;
  await server.query(`CREATE DATABASE ${name}`);
  url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
});

function open(): LockManager {
  const locks = createLocks(postgresAdvisoryBackend(url));
  onTestFinished(() => locks.close());
  return locks;
}

/** A session of a version with another layout. */
async function sessionOf(layout: number): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`SELECT pg_advisory_lock_shared(${MARK}, ${layout})`);
  return client;
}

/** The layouts of the marks in the database, one for each session. */
async function marks(): Promise<readonly number[]> {
  const database = new URL(url).pathname.slice(1);
  const rows = await server.query(
    `SELECT objid::int AS layout FROM pg_locks JOIN pg_database ON pg_database.oid = database
     WHERE locktype = 'advisory' AND objsubid = 2 AND classid = ${MARK} AND datname = '${database}'`,
  );
  return rows.map(({ layout }) => Number(layout));
}

it.each([
  ['newer', 2, 'NEWER_SCHEMA', 'Upgrade this process'],
  ['older', 0, 'OLDER_SCHEMA', 'Stop all processes of the older version'],
])(
  'while a session of a %s layout lives, a process is refused, and leaves no mark',
  async (_, layout, code, toDo) => {
    const session = await sessionOf(layout);
    const locks = open();
    const refusal = {
      code: 'LOCK_BACKEND',
      message: expect.stringContaining(toDo) as unknown,
      cause: { name: 'StoreLayoutError', code },
    };
    await expect(locks.lock('a').acquire({ waitMs: 60_000 })).rejects.toMatchObject(refusal);
    await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refusal);
    await expect(locks.forceRelease('a')).rejects.toMatchObject(refusal);
    await waitUntil(async () => (await marks()).length === 1, { what: 'the mark of the other layout alone' });
    await session.end();
    await waitUntil(async () => (await marks()).length === 0, { what: 'the end of the other layout' });
    expect(await locks.lock('a').tryAcquire()).toBeDefined();
  },
);

it('each session that may hold a lock has the mark, until it ends', async () => {
  const [one, two] = [open(), open()];
  const held = await one.lock('a').acquire();
  expect(await marks()).toEqual([1]);
  const waiting = two.lock('a').acquire();
  // The session that tries, and the one that waits in the queue of the server.
  await waitUntil(async () => (await marks()).length === 3, { what: 'the marks of three sessions' });
  await held.release();
  await waiting;
  await Promise.all([one.close(), two.close()]);
  await waitUntil(async () => (await marks()).length === 0, { what: 'the end of the sessions' });
});

it('a mark in another database refuses nobody', async () => {
  await sessionOf(2);
  const elsewhere = createLocks(postgresAdvisoryBackend(server.url));
  onTestFinished(() => elsewhere.close());
  expect(await elsewhere.lock('a').tryAcquire()).toBeDefined();
});

it('a session that cannot be marked holds no lock', async () => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`SELECT pg_advisory_lock(${MARK}, 1)`);
  const locks = open();
  const waiting = locks.lock('a').acquire({ waitMs: 20_000 });
  await expect(locks.lock('b').tryAcquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await client.query(`SELECT pg_advisory_unlock(${MARK}, 1)`);
  await waiting;
});
