import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'all',
  });
  await fixture.server.query('CREATE EXTENSION pg_stat_statements');
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  await fixture.server.query('SELECT pg_stat_statements_reset()');
});

/** How often statements like this ran, sent by clients or run inside functions. */
async function calls(like: string, by: 'clients' | 'functions' = 'clients'): Promise<number> {
  const [row] = await fixture.server.query(
    `SELECT coalesce(sum(calls), 0) AS calls FROM pg_stat_statements
     WHERE toplevel = ${by === 'clients'} AND query ILIKE '%${like}%' AND query NOT ILIKE '%pg_stat_statements%'`,
  );
  return Number(row?.['calls']);
}

/** Resolves when the store knows `count` clients that listen. */
async function untilListening(schema: string, count = 1): Promise<void> {
  const listening = `SELECT 1 FROM ${schema}.clients WHERE listener IS NOT NULL AND NOT ${schema}.has_ended(listener)`;
  await waitUntil(async () => (await fixture.server.query(listening)).length === count, {
    what: `${count} that listen`,
  });
}

// Not concurrent: the tests count all statements of the server.
describe('what the server sees', () => {
  it('an acquire and a release are one statement each, and nobody is notified', async () => {
    const schema = fixture.schema();
    const locks = fixture.locks({ schema });
    await locks.lock('warm').run(() => undefined);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    for (let round = 0; round < 50; round += 1) await locks.lock('a').run(() => undefined);
    expect(await calls('')).toBe(100);
    expect(await calls('INSERT INTO')).toBe(50);
    expect(await calls('DELETE FROM')).toBe(50);
    expect(await calls('pg_notify', 'functions')).toBe(0);
    expect(await fixture.server.query(`SELECT 1 FROM ${schema}.locks`)).toHaveLength(0);
  });

  it('an acquire and a release of a share or a permit are one statement each too', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    await locks.lock('warm').run(() => undefined);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    for (let round = 0; round < 10; round += 1) {
      await locks.readWriteLock('a').read.run(() => undefined);
      await locks.semaphore('b', 3).run(() => undefined);
    }
    expect(await calls('')).toBe(40);
  });

  it('a hand-off within a process takes no message; one to another process takes one', async () => {
    const schema = fixture.schema();
    const [near, far] = [fixture.locks({ schema }), fixture.locks({ schema })];
    for (const [waiter, messages] of [
      [near, 0],
      [far, 1],
    ] as const) {
      const lease = await near.lock('a').acquire();
      const entered = waiter.lock('a').acquire();
      await waitUntil(async () => (await near.inspect('a')).waiters.length === 1, { what: 'a waiter' });
      // For a backend that does not listen yet there is no message either.
      await untilListening(schema, messages + 1);
      await fixture.server.query('SELECT pg_stat_statements_reset()');
      await lease.release();
      await (await entered).release();
      expect(await calls('pg_notify', 'functions')).toBe(messages);
      expect(await calls('.release(')).toBe(2);
      // The waiter sent no statement for the grant itself.
      expect(await calls('.acquire(')).toBe(0);
      expect(await calls('INSERT INTO')).toBe(0);
    }
  });

  it('a backend sends nothing while nobody waits, and one statement a second for all its waiters', async () => {
    const schema = fixture.schema();
    const [holder, waiters] = [fixture.locks({ schema }), fixture.locks({ schema })];
    const lease = await holder.lock('a').acquire({ ttlMs: 60_000 });
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    await sleep(1_200);
    expect(await calls('')).toBe(0);
    const abort = new AbortController();
    const ended = Promise.allSettled(
      Array.from({ length: 20 }, () => waiters.lock('a').acquire({ waitMs: 60_000, signal: abort.signal })),
    );
    await waitUntil(async () => (await holder.inspect('a')).waiters.length === 20, { what: '20 waiters' });
    await untilListening(schema);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    const from = performance.now();
    await waitUntil(async () => (await calls('.check_waiters(')) >= 3, { what: 'three checks' });
    // The first may have come at once.
    expect(performance.now() - from).toBeGreaterThan(1_900);
    expect(await calls('')).toBe(await calls('.check_waiters('));
    abort.abort();
    await ended;
    await lease.release();
  });

  it('many leases are renewed by one statement', async () => {
    const backend = fixture.backend({ schema: fixture.schema() });
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    const mode = { kind: 'exclusive' } as const;
    const grants = await Promise.all(
      Array.from({ length: 100 }, async (_, at) => {
        const request = { resource: `lock ${at}`, acquisitionId: `id-${at}`, mode, ttlMs: 5_000 };
        const attempt = await backend.attempt(request, false, call);
        if (attempt.status !== 'granted') throw new Error(attempt.status);
        return attempt.grant;
      }),
    );
    await backend.forceRelease?.('lock 7', undefined, call);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    const renewalStatuses = await backend.renew(
      grants.map((grant) => ({ grant, ttlMs: 9_000 })),
      call,
    );
    expect(await calls('.renew(')).toBe(1);
    expect(renewalStatuses.filter(({ status }) => status === 'held')).toHaveLength(99);
    expect(renewalStatuses[7]).toEqual({ status: 'lost', reason: 'force-released' });
    const { holders } = await backend.inspect('lock 8', call);
    expect(holders[0]?.expiresInMs).toBeGreaterThan(5_000);
  });

  it('a thousand waiters of one lock are queued, and abandoned together, in a few statements', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    const lease = await locks.lock('a').acquire({ ttlMs: 60_000 });
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    const abort = new AbortController();
    const waits = Array.from({ length: 1_000 }, () =>
      locks.lock('a').acquire({ waitMs: 60_000, signal: abort.signal }),
    );
    const ended = Promise.allSettled(waits);
    await waitUntil(async () => (await locks.inspect('a')).waiters.length === 1_000, {
      what: '1 000 waiters',
    });
    expect(await calls('.acquire')).toBeLessThan(40);
    abort.abort();
    await ended;
    await waitUntil(async () => (await locks.inspect('a')).waiters.length === 0, { what: 'no waiter' });
    expect(await calls('.release_all(')).toBeLessThan(20);
    await lease.release();
  });

  it('a hand-off lasts for its ttl: it costs no renewal, also where renewal is manual', async () => {
    const options = { ttlMs: 20_000, renewal: 'manual' } as const;
    const schema = fixture.schema();
    const [holder, waiter] = [fixture.locks({ schema }, options), fixture.locks({ schema }, options)];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilListening(schema);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    await lease.release();
    const next = await entered;
    expect(await calls('.renew(')).toBe(0);
    expect(next.validForMs).toBeGreaterThan(18_000);
    expect((await holder.inspect('a')).holders[0]?.expiresInMs).toBeGreaterThan(18_000);
    await next.release();
  });

  it('an acquire that is given up before it was sent costs no statement', async () => {
    const pool = fixture.pool({ max: 1 });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('a').run(() => undefined);
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    const client = await pool.connect();
    const abort = new AbortController();
    const waits = Array.from({ length: 100 }, (_, at) =>
      locks.lock(`a ${at % 10}`).acquire({ waitMs: 60_000, signal: abort.signal }),
    );
    const ended = Promise.allSettled(waits);
    await waitUntil(async () => pool.waitingCount > 0, { what: 'the backend to ask for a connection' });
    abort.abort();
    await ended;
    client.release();
    await locks.lock('a').run(() => undefined);
    expect(await calls('')).toBe(2);
  });

  it('several locks at once are one statement, which grants nothing when one of them is held', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    await locks.lock('warm').run(() => undefined);
    const all = () => locks.all(['c', 'a', 'b'].map((name) => locks.lock(name)));
    await fixture.server.query('SELECT pg_stat_statements_reset()');
    const lease = await all().acquire();
    expect(await calls('')).toBe(1);
    expect(await all().tryAcquire()).toBeUndefined();
    await lease.release();
    const taken = await locks.lock('b').acquire();
    expect(await all().tryAcquire()).toBeUndefined();
    expect((await locks.inspect('a')).holders).toHaveLength(0);
    await taken.release();
  });
});
