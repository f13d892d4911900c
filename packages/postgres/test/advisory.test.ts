import { createLocks, type LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { advisoryKey, postgresAdvisoryBackend } from '../src/index.ts';

let server: Awaited<ReturnType<typeof startPostgres>>;
let names = 0;
const freshName = (): string => `advisory ${(names += 1)}`;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

function open(application: string, maxConnections = 10): LockManager {
  const connectionString = `${server.url}?application_name=${encodeURIComponent(application)}`;
  return createLocks(postgresAdvisoryBackend(connectionString, { maxConnections }), { waitMs: 15_000 });
}

async function untilWaiting(locks: LockManager, name: string, count: number): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

/** Resolves when the server has so many requests for a name in its queue. */
async function untilQueued(name: string, count: number): Promise<void> {
  const bits = BigInt.asUintN(64, advisoryKey(name));
  const text = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND classid = ${bits >> 32n} AND objid = ${bits & 0xffff_ffffn}`;
  await waitUntil(async () => (await server.query(text)).length === count, {
    what: `${count} requests for ${name} on the server`,
  });
}

async function connectionsOf(application: string): Promise<number> {
  return (await server.query(`SELECT 1 FROM pg_stat_activity WHERE application_name = '${application}'`))
    .length;
}

describe.concurrent('postgresAdvisoryBackend', () => {
  it('makes keys of the first 64 bits of SHA-256, which other programs can use', async () => {
    expect(advisoryKey('sku:42')).toBe(-6659701280413539429n);
    const name = freshName();
    await using locks = open(name);
    const psql = new pg.Client({ connectionString: server.url });
    await psql.connect();
    try {
      const sql = `SELECT pg_try_advisory_lock(('x' || left(encode(sha256($1::bytea), 'hex'), 16))::bit(64)::int8) AS got`;
      expect((await psql.query(sql, [Buffer.from(name)])).rows).toEqual([{ got: true }]);
      expect(await locks.lock(name).tryAcquire()).toBeUndefined();
      const { holders } = await locks.inspect(name);
      expect(holders).toMatchObject([{ mode: { kind: 'exclusive' } }]);
    } finally {
      await psql.end();
    }
  });

  it('names the sequence of its tokens if it may not create it, and works once the sequence exists', async () => {
    await server.query('CREATE ROLE tokenless LOGIN');
    const url = new URL(server.url);
    url.username = 'tokenless';
    const backend = postgresAdvisoryBackend(url.href, { fencing: { schema: 'tokens' } });
    await using locks = createLocks(backend);
    await expect(locks.lock(freshName()).acquire()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringMatching(/permission denied.*CREATE SEQUENCE \S*tokens\S*advisory_fencing_token/),
    });
    await server.query('CREATE SCHEMA tokens');
    await server.query('CREATE SEQUENCE tokens.advisory_fencing_token AS bigint');
    await server.query('GRANT USAGE ON SCHEMA tokens TO tokenless');
    await server.query('GRANT USAGE ON SEQUENCE tokens.advisory_fencing_token TO tokenless');
    await (await locks.lock(freshName()).acquire()).release();
  });

  it('serves waiters of two processes in the order in which they came, and neighbours on one connection', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const holder = await two.lock(name).acquire();
    const served: string[] = [];
    const turns: Promise<void>[] = [];
    const order = ['one 1', 'one 2', 'one 3', 'two 1', 'one 4', 'one 5', 'two 2', 'one 6'];
    for (const [position, who] of order.entries()) {
      const lock = (who.startsWith('one') ? one : two).lock(name);
      turns.push(lock.run(() => void served.push(who), { label: who }));
      await untilWaiting(two, name, position + 1);
    }
    for (const locks of [one, two])
      expect((await locks.inspect(name)).waiters.map(({ label }) => label)).toEqual(order);
    // The main connection, and one for each of the three groups.
    expect(await connectionsOf(`one ${name}`)).toBe(4);
    await holder.release();
    await Promise.all(turns);
    expect(served).toEqual(order);
  });

  it('lets readers behind a writer of another process wait, and grants neighbours that fit together', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const first = await one.readWriteLock(name).read.acquire();
    const writing = two.readWriteLock(name).write.acquire();
    await untilWaiting(one, name, 1);
    expect(await one.readWriteLock(name).read.tryAcquire()).toBeUndefined();
    const readers = [one, one, two].map((locks) => locks.readWriteLock(name).read.acquire());
    await untilWaiting(one, name, 4);
    await first.release();
    const writer = await writing;
    expect((await one.inspect(name)).waiters).toHaveLength(3);
    await writer.release();
    for (const lease of await Promise.all(readers)) await lease.release();
  });

  it('keeps an exclusive lock over a downgrade while a writer of this process is next', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const { read, write } = one.readWriteLock(name);
    const lease = await write.acquire();
    const writer = write.acquire();
    await untilWaiting(one, name, 1);
    const reader = two.readWriteLock(name).read.acquire();
    await untilWaiting(one, name, 2);
    await lease.downgrade();
    // The writer is next, so the reader of the other process must not enter, neither before the writer nor beside it.
    let readerIsIn = false;
    const reading = reader.then((granted) => {
      readerIsIn = true;
      return granted.release();
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await two.inspect(name)).waiters).toHaveLength(2);
    expect(await read.tryAcquire()).toBeUndefined();
    await lease.release();
    const next = await writer;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(readerIsIn).toBe(false);
    await next.release();
    await reading;
  });

  it('weakens the downgraded lock for other processes when the writer behind it gives up', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const lease = await one.readWriteLock(name).write.acquire();
    const controller = new AbortController();
    const writer = one.readWriteLock(name).write.acquire({ signal: controller.signal });
    await untilWaiting(one, name, 1);
    const reader = two.readWriteLock(name).read.acquire();
    await untilWaiting(one, name, 2);
    await lease.downgrade();
    controller.abort();
    await expect(writer).rejects.toBe(controller.signal.reason);
    await (await reader).release();
    await lease.release();
  });

  it('lets readers in when the writer before them gives up and readers of another process wait behind', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const holder = await two.readWriteLock(name).read.acquire();
    const controller = new AbortController();
    const writer = one.readWriteLock(name).write.acquire({ signal: controller.signal });
    await untilWaiting(one, name, 1);
    const reader = one.readWriteLock(name).read.acquire();
    await untilWaiting(one, name, 2);
    const other = two.readWriteLock(name).read.acquire();
    await untilWaiting(one, name, 3);
    controller.abort();
    await expect(writer).rejects.toBe(controller.signal.reason);
    const leases = await Promise.all([reader, other]);
    await Promise.all([holder, ...leases].map((lease) => lease.release()));
  });

  it.each([
    ['on connections of their own', 10],
    ['without a connection to wait on', 1],
  ])('lets readers in beside readers when the writer before them gives up, %s', async (_, connections) => {
    const name = freshName();
    await using one = open(`one ${name}`, connections);
    await using two = open(`two ${name}`);
    const holder = await two.readWriteLock(name).read.acquire();
    const controller = new AbortController();
    const writer = one.readWriteLock(name).write.acquire({ signal: controller.signal });
    await untilWaiting(one, name, 1);
    const readers = [1, 2].map(() => one.readWriteLock(name).read.acquire());
    await untilWaiting(one, name, 3);
    controller.abort();
    await expect(writer).rejects.toBe(controller.signal.reason);
    const leases = await Promise.all(readers);
    expect((await two.inspect(name)).holders).toHaveLength(3);
    await Promise.all([holder, ...leases].map((lease) => lease.release()));
    await (await two.lock(name).acquire({ waitMs: 0 })).release();
  });

  it('lets readers in when the writer before them gives up and a writer of another process waits behind', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const holder = await two.readWriteLock(name).read.acquire();
    const controller = new AbortController();
    const gaveUp = one.readWriteLock(name).write.acquire({ signal: controller.signal });
    await untilWaiting(one, name, 1);
    const reader = one.readWriteLock(name).read.acquire();
    await untilWaiting(one, name, 2);
    const writer = two.readWriteLock(name).write.acquire();
    await untilWaiting(two, name, 3);
    controller.abort();
    await expect(gaveUp).rejects.toBe(controller.signal.reason);
    const lease = await reader;
    const { holders, waiters } = await two.inspect(name);
    expect([holders.length, waiters.length]).toEqual([2, 1]);
    await Promise.all([holder, lease].map((one) => one.release()));
    await (await writer).release();
    await (await one.lock(name).acquire({ waitMs: 0 })).release();
  });

  it('gives readers that waited without a connection a request of their own, behind their writer', async () => {
    const name = freshName();
    // Two of the three wait for other locks, so that none is left to wait on.
    await using one = open(`one ${name}`, 3);
    await using two = open(`two ${name}`);
    const holder = await two.readWriteLock(name).read.acquire();
    const others = [freshName(), freshName()];
    const busy = await Promise.all(others.map((other) => two.lock(other).acquire()));
    const ahead = others.map((other) => one.lock(other).acquire());
    for (const other of others) await untilWaiting(two, other, 1);
    const controller = new AbortController();
    const gaveUp = one.readWriteLock(name).write.acquire({ signal: controller.signal });
    await untilWaiting(one, name, 1);
    const readers = [1, 2].map(() => one.readWriteLock(name).read.acquire());
    await untilWaiting(one, name, 3);
    for (const lease of [...busy, ...ahead]) await (await lease).release();
    await untilQueued(name, 2);
    const writer = two.readWriteLock(name).write.acquire();
    await untilWaiting(two, name, 4);
    controller.abort();
    await expect(gaveUp).rejects.toBe(controller.signal.reason);
    const leases = await Promise.all(readers);
    await Promise.all([holder, ...leases].map((lease) => lease?.release()));
    await (await writer).release();
  });

  it('ends the holds of another process by force, however many there are', async () => {
    const name = freshName();
    await using one = open(`one ${name}`);
    await using two = open(`two ${name}`);
    const { read } = one.readWriteLock(name);
    const leases = await Promise.all(Array.from({ length: 700 }, () => read.acquire()));
    expect(await two.forceRelease(name)).toHaveLength(700);
    expect(leases.every(({ signal }) => signal.aborted)).toBe(true);
    await (await two.lock(name).acquire({ waitMs: 0 })).release();
  });

  it('gives tokens that rise over sessions, hand-offs and modes when it has a schema; two may create it at once', async () => {
    const name = freshName();
    const fencing = { schema: 'Fences-of_tests' };
    const backends = [1, 2, 3].map(() => postgresAdvisoryBackend(server.url, { fencing }));
    const managers = backends.map((backend) => createLocks(backend));
    const tokens: bigint[] = [];
    await Promise.all(
      [...managers, ...managers].map((locks) =>
        locks.lock(name).run(async (lease) => {
          expectTypeOf(lease.fencingToken).toEqualTypeOf<bigint>();
          tokens.push(lease.fencingToken);
        }),
      ),
    );
    expect(tokens).toHaveLength(6);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(6);
    await Promise.all(managers.map((locks) => locks.close()));
  });

  it('leaves nothing locked when there is no token, and reports why', async ({ expect }) => {
    const name = freshName();
    const fencing = { schema: 'no_tokens' };
    await using locks = createLocks(postgresAdvisoryBackend(server.url, { fencing }));
    await using others = open(name);
    await (await locks.lock(name).acquire()).release();
    await (await locks.lock(name).acquire()).release();
    // The lock is taken before the sequence refuses.
    await server.query('ALTER SEQUENCE no_tokens.advisory_fencing_token MAXVALUE 2');
    await expect(locks.lock(name).acquire()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: '2200H' },
    });
    const free = await others.lock(name).tryAcquire();
    expect(free).toBeDefined();
    // After a wait as well: the lock is granted, and there is no token.
    const waiting = expect(locks.lock(name).acquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await Promise.all([waiting, free?.release()]);
    await (await others.lock(name).acquire()).release();
  });

  it('has no tokens without a schema, writes nothing to the database, and says so in its type', async () => {
    const backend = postgresAdvisoryBackend(server.url);
    expectTypeOf(backend.capabilities.fencing).toEqualTypeOf<'none'>();
    expect(backend.capabilities.fencing).toBe('none');
    await using locks = createLocks(backend);
    await using lease = await locks.lock(freshName()).acquire();
    expect((lease as { fencingToken?: bigint }).fencingToken).toBeUndefined();
  });

  it('closes its connections, and opens none before the first call', async () => {
    const name = freshName();
    const locks = open(name);
    expect(await connectionsOf(name)).toBe(0);
    await locks.lock(name).acquire();
    expect(await connectionsOf(name)).toBe(1);
    await locks.close();
    await waitUntil(async () => (await connectionsOf(name)) === 0, { what: 'its connections to close' });
  });

  it('waits for longer than a query_timeout of the pool that it was given', async () => {
    const name = freshName();
    const pool = new pg.Pool({ connectionString: server.url, application_name: name, query_timeout: 150 });
    await using locks = createLocks(postgresAdvisoryBackend(pool));
    await using other = open(`other ${name}`);
    const lease = await other.lock(name).acquire();
    const waiting = locks.lock(name).acquire();
    await untilWaiting(other, name, 1);
    const sessions = `SELECT pid FROM pg_stat_activity WHERE application_name = '${name}' ORDER BY pid`;
    const before = await server.query(sessions);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await server.query(sessions)).toEqual(before);
    await lease.release();
    await (await waiting).release();
    await pool.end();
  });

  it('refuses bad options before anything is sent', () => {
    const url = 'postgres://localhost/none';
    const bad: readonly (readonly [unknown, unknown?])[] = [
      [undefined],
      [{}],
      ['mysql://localhost'],
      [{ pool: new pg.Pool() }],
      [url, { sessionTimeoutMs: 899 }],
      [url, { sessionTimeoutMs: 1_000.5 }],
      [url, { maxConnections: 0 }],
      [url, { maxConnections: 101 }],
      [url, { fencing: {} }],
      [url, { fencing: null }],
      [url, { fencing: { schema: '' } }],
      [url, { schema: 'locks' }],
    ];
    for (const [source, options] of bad) {
      expect(() => postgresAdvisoryBackend(source as string, options as undefined)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }) as Error,
      );
    }
    const backend: LockBackend = postgresAdvisoryBackend(url);
    expect(backend.name).toBe('postgres-advisory');
  });
});
