import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireRequest, Call } from '@locks/core/backend';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acquireValues, call, LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A schema and two sessions that call its functions by hand. */
async function sessions() {
  const schema = fixture.schema();
  await fixture.prepare({ schema });
  const [one, two] = [await fixture.session(), await fixture.session()];
  /** Lets a client listen, as a backend does. Resolves to its session. */
  const listen = async (client: string) => {
    const session = await fixture.session();
    const key = randomInt(2 ** 40);
    await session.query(`SELECT pg_advisory_lock(${key})`);
    await session.query(
      `INSERT INTO ${schema}.clients VALUES ($1, 'infinity', ${key}, pg_postmaster_start_time())`,
      [client],
    );
    return session;
  };
  const holderOf = async (name: string) =>
    (await one.query(`SELECT id FROM ${schema}.locks WHERE name = $1`, [Buffer.from(name)]))
      .rows[0] as unknown;
  const { processID: pid } = two as unknown as { readonly processID: number };
  const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND pid = ${pid}`;
  const blocked = async () => (await fixture.server.query(waiting)).length > 0;
  return { schema, one, two, listen, holderOf, blocked };
}

/** The session of a plain insert that waits for another transaction. */
function blockedInsert(schema: string): string {
  return `FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO "${schema}"%'`;
}

async function untilBlocked(schema: string): Promise<void> {
  await waitUntil(
    async () => (await fixture.server.query(`SELECT 1 ${blockedInsert(schema)}`)).length === 1,
    {
      what: 'an insert to wait',
    },
  );
}

// What is expected before it is awaited takes `expect` of its own test: the common one may give it to a test that runs beside.
describe.concurrent('the queue', () => {
  it('a release that meets an enqueue not yet committed hands off to it: no wake-up is lost', async () => {
    const { schema, one, two, listen, holderOf, blocked } = await sessions();
    await listen('w');
    expect(await call(two, schema, 'acquire', acquireValues('a', 'holder', 'h'))).toMatch(/^g /);
    await one.query('BEGIN');
    expect(await call(one, schema, 'acquire', acquireValues('a', 'waiter', 'w'))).toMatch(/^q [1-9]/);
    // Its snapshot is older than the enqueue: a query of the table of waiters would find none.
    const released = call(two, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    await waitUntil(blocked, { what: 'the release to wait for the enqueue' });
    await one.query('COMMIT');
    expect(await released).toBe('r');
    expect(await holderOf('a')).toEqual({ id: 'waiter' });
  });

  it('an enqueue that meets a release not yet committed is granted', async () => {
    const { schema, one, two, holderOf, blocked } = await sessions();
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await one.query('BEGIN');
    await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    const entered = call(two, schema, 'acquire', acquireValues('a', 'waiter', 'w'));
    await waitUntil(blocked, { what: 'the enqueue to wait for the release' });
    await one.query('COMMIT');
    expect(await entered).toMatch(/^g /);
    expect(await holderOf('a')).toEqual({ id: 'waiter' });
  });

  it('a hand-off lasts for the ttl of its waiter, and a check reports what is left of it', async () => {
    const { schema, one } = await sessions();
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'waiter', 'w'));
    const handedOff = await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'w']);
    const token = /^r\nwaiter (\d+)$/.exec(handedOff)?.[1];
    await one.query('SELECT pg_sleep(0.2)');
    const check = ['w', [Buffer.from('a')], ['waiter'], null];
    const [, hold = ''] = (await call(one, schema, 'check_waiters', check)).split('\n');
    expect(hold).toMatch(new RegExp(`^h waiter ${token} `));
    const leftMs = Number(hold.split(' ')[3]);
    expect(leftMs).toBeGreaterThan(15_000);
    expect(leftMs).toBeLessThanOrEqual(19_800);
  });

  it('an attempt waits for a renewal not yet committed before it counts a share as expired', async () => {
    const { schema, one, two, blocked } = await sessions();
    const share = [Buffer.from('a'), 'reader', 1, 1, null, 400, 'reader', 'h', false, false, -1];
    const granted = await call(one, schema, 'acquire', share);
    await one.query('BEGIN');
    const renewal = [[Buffer.from('a')], ['reader'], [granted.slice(2)], [20_000]];
    expect(await call(one, schema, 'renew', renewal)).toBe('h');
    await one.query('SELECT pg_sleep(0.5)');
    const attempt = call(two, schema, 'acquire', acquireValues('a', 'writer', 'w', { enqueues: false }));
    await waitUntil(blocked, { what: 'the writer to wait for the renewal' });
    await one.query('COMMIT');
    expect(await attempt).toMatch(/^q 0 /);
  });

  it('a token is higher than those that were drawn while its insert waited for other holders to come and go', async () => {
    const { schema, one, two, blocked } = await sessions();
    await one.query('BEGIN');
    await call(one, schema, 'acquire', acquireValues('a', 'first', 'f'));
    const entered = call(two, schema, 'acquire', acquireValues('a', 'third', 't'));
    await waitUntil(blocked, { what: 'the third to wait after it drew its token' });
    await call(one, schema, 'release', [Buffer.from('a'), 'first', 'f']);
    const second = await call(one, schema, 'acquire', acquireValues('a', 'second', 's'));
    await call(one, schema, 'release', [Buffer.from('a'), 'second', 's']);
    await one.query('COMMIT');
    const third = await entered;
    expect([second, third]).toEqual([expect.stringMatching(/^g /), expect.stringMatching(/^g /)]);
    expect(BigInt(third.slice(2))).toBeGreaterThan(BigInt(second.slice(2)));
  });

  it('a token of the plain insert is higher than those that were drawn while it waited', async () => {
    const { schema, one } = await sessions();
    const locks = fixture.locks({ schema });
    await locks.lock('warm').run(() => undefined);
    await one.query('BEGIN');
    await call(one, schema, 'acquire', acquireValues('a', 'first', 'f'));
    const entered = locks.lock('a').acquire();
    await untilBlocked(schema);
    await call(one, schema, 'release', [Buffer.from('a'), 'first', 'f']);
    const second = await call(one, schema, 'acquire', acquireValues('a', 'second', 's'));
    await call(one, schema, 'release', [Buffer.from('a'), 'second', 's']);
    await one.query('COMMIT');
    const third = await entered;
    expect(third.fencingToken).toBeGreaterThan(BigInt(second.slice(2)));
    expect((await locks.inspect('a')).holders[0]?.fencingToken).toBe(third.fencingToken);
    await third.release();
  });

  it('a plain delete that meets an enqueue not yet committed hands off to it', async () => {
    const { schema, one, listen, holderOf } = await sessions();
    await listen('w');
    const locks = fixture.locks({ schema });
    await locks.lock('warm').run(() => undefined);
    const lease = await locks.lock('a').acquire();
    await one.query('BEGIN');
    expect(await call(one, schema, 'acquire', acquireValues('a', 'waiter', 'w'))).toMatch(/^q [1-9]/);
    const released = lease.release();
    const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM "${schema}"%'`;
    await waitUntil(async () => (await fixture.server.query(waits)).length === 1, {
      what: 'the release to wait',
    });
    await one.query('COMMIT');
    await released;
    expect(await holderOf('a')).toEqual({ id: 'waiter' });
  });

  it('an attempt whose plain insert is refused stays ahead of those that were called after it', async () => {
    const { schema, one } = await sessions();
    const locks = fixture.locks({ schema });
    await locks.lock('warm').run(() => undefined);
    await one.query('BEGIN');
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    const second = locks.lock('a').acquire({ label: 'second' });
    await untilBlocked(schema);
    const third = locks.lock('a').acquire({ label: 'third' });
    await one.query('COMMIT');
    const labels = async () => (await locks.inspect('a')).waiters.map(({ label }) => label);
    await waitUntil(async () => (await labels()).length === 2, { what: 'two waiters' });
    expect(await labels()).toEqual(['second', 'third']);
    await locks.forceRelease('a');
    await (await second).release();
    await (await third).release();
  });

  it('an attempt is withdrawn unsent only if no earlier one of its id was sent', async ({ expect }) => {
    const { schema, one, holderOf } = await sessions();
    const pool = fixture.pool({ max: 1 });
    const backend = fixture.backend({ schema, pool });
    const time: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    const mode = { kind: 'exclusive' } as const;
    const request = { resource: 'a', acquisitionId: 'id', mode, ttlMs: 60_000 };
    await backend.inspect('a', time);
    await one.query('BEGIN');
    await call(one, schema, 'acquire', acquireValues('a', 'other', 'o'));
    const first = expect(backend.attempt(request, true, time)).rejects.toThrow();
    await untilBlocked(schema);
    await fixture.server.query(`SELECT pg_terminate_backend(pid) ${blockedInsert(schema)}`);
    await first;
    await one.query('ROLLBACK');
    // As if the insert had taken effect before its connection ended.
    await call(one, schema, 'acquire', acquireValues('a', 'id', 'c'));
    const client = await pool.connect();
    const again = expect(backend.attempt(request, true, time)).rejects.toThrow();
    const abandoned = backend.abandon(request, time);
    client.release();
    await Promise.all([again, abandoned]);
    expect(await holderOf('a')).toBeUndefined();
  });

  it('an attempt that fails after its abandon was answered leaves no waiter behind, for whom the backend would poll', async ({
    expect,
  }) => {
    const { schema, one } = await sessions();
    const backend = fixture.backend({ schema, listen: false });
    const time: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    const mode = { kind: 'exclusive' } as const;
    const [gone, waits] = ['gone', 'waits'].map((acquisitionId) => ({
      resource: 'a',
      acquisitionId,
      mode,
      ttlMs: 60_000,
    })) as [AcquireRequest, AcquireRequest];
    await backend.inspect('a', time);
    await one.query('BEGIN');
    await call(one, schema, 'acquire', acquireValues('a', 'other', 'o'));
    const attempt = expect(backend.attempt(gone, true, time)).rejects.toThrow();
    await untilBlocked(schema);
    await backend.abandon(gone, time);
    await fixture.server.query(`SELECT pg_terminate_backend(pid) ${blockedInsert(schema)}`);
    await attempt;
    await one.query('COMMIT');
    // The polls begin with a waiter in the queue, and end with the last waiter.
    expect(await backend.attempt(waits, true, time)).toEqual({ status: 'contended' });
    await backend.abandon(waits, time);
    await delay(300);
    const aliveUntil = () => fixture.server.query(`SELECT alive_until FROM ${schema}.clients`);
    const before = await aliveUntil();
    await delay(300);
    expect(await aliveUntil()).toEqual(before);
  });

  it.each(['one lock', 'a set'])(
    'an attempt at %s that was aborted while it waited for a connection is not sent',
    async (what) => {
      const { schema, holderOf } = await sessions();
      const pool = fixture.pool({ max: 1 });
      const backend = fixture.backend({ schema, pool });
      const controller = new AbortController();
      const time: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
      const mode = { kind: 'exclusive' } as const;
      const request = { resource: 'a', acquisitionId: 'id', mode, ttlMs: 60_000 };
      await backend.inspect('a', time);
      const client = await pool.connect();
      const givenUp = { ...time, signal: controller.signal };
      const attempt =
        what === 'a set'
          ? backend.attemptMany?.([request, { ...request, resource: 'b' }], givenUp)
          : backend.attempt(request, true, givenUp);
      controller.abort();
      client.release();
      const error: unknown = await attempt?.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(await holderOf('a')).toBeUndefined();
    },
  );

  it('a steal takes nothing from those whose turn has just come: they wait on', async () => {
    const { schema, one, listen, holderOf } = await sessions();
    await listen('w');
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'waiting', 'w'));
    await one.query(`UPDATE ${schema}.locks SET expires_at = clock_timestamp()`);
    const steal = [...acquireValues('a', 'stealing', 's').slice(0, -3), true, false, -1];
    expect(await call(one, schema, 'acquire', steal)).toMatch(/^g /);
    const queue = await one.query(`SELECT id FROM ${schema}.waiters`);
    expect([await holderOf('a'), queue.rows]).toEqual([{ id: 'stealing' }, [{ id: 'waiting' }]]);
    await call(one, schema, 'release', [Buffer.from('a'), 'stealing', 's']);
    expect(await holderOf('a')).toEqual({ id: 'waiting' });
  });

  it('a stolen share is reported as taken over, also when a share stole it', async () => {
    const { schema, one } = await sessions();
    const share = (id: string, steals: boolean) => [
      ...[Buffer.from('a'), id, 1, 1, null, 20_000, id, 'h'],
      ...[steals, false, -1],
    ];
    const stolen = (await call(one, schema, 'acquire', share('holder', false))).slice(2);
    const token = (await call(one, schema, 'acquire', share('stealing', true))).slice(2);
    const renew = (id: string, of: string) =>
      call(one, schema, 'renew', [[Buffer.from('a')], [id], [of], [20_000]]);
    expect(await renew('holder', stolen)).toBe('t');
    expect(await renew('stealing', token)).toBe('h');
  });

  it('the release itself passes over waiters of a silent process', async () => {
    const { schema, one, listen, holderOf } = await sessions();
    await listen('d');
    await listen('n');
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'dead', 'd'));
    await call(one, schema, 'acquire', acquireValues('a', 'next', 'n'));
    await one.query(`UPDATE ${schema}.clients SET alive_until = clock_timestamp() WHERE client = 'd'`);
    await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    expect(await holderOf('a')).toEqual({ id: 'next' });
  });

  it('the release itself passes over waiters of a process whose listener has ended, however fresh its heartbeat is', async () => {
    const { schema, one, listen, holderOf } = await sessions();
    const dying = await listen('d');
    await listen('n');
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'dead', 'd'));
    await call(one, schema, 'acquire', acquireValues('a', 'dead too', 'd'));
    await call(one, schema, 'acquire', acquireValues('a', 'next', 'n'));
    await dying.end();
    const left = `SELECT 1 FROM ${schema}.clients WHERE listener IS NOT NULL AND NOT ${schema}.has_ended(listener)`;
    await waitUntil(async () => (await one.query(left)).rows.length === 1, { what: 'a session to end' });
    await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    expect(await holderOf('a')).toEqual({ id: 'next' });
    // Whoever asked left no lock behind: the session of the living listener holds the only one.
    expect(
      (await one.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'")).rows,
    ).toEqual([]);
  });

  it.each([
    ['does not listen', 'listener = NULL'],
    ['listened before the server was restarted', "server_start = server_start - interval '1 second'"],
  ])(
    'a head whose client %s is handed nothing: it takes the free lock at its check, and nobody before it',
    async (_, state) => {
      const { schema, one, listen, holderOf } = await sessions();
      await listen('p');
      await listen('n');
      await one.query(`UPDATE ${schema}.clients SET ${state} WHERE client = 'p'`);
      await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
      await call(one, schema, 'acquire', acquireValues('a', 'polling', 'p'));
      await call(one, schema, 'acquire', acquireValues('a', 'next', 'n'));
      expect(await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h'])).toBe('r');
      expect(
        await call(one, schema, 'acquire', acquireValues('a', 'other', 'o', { enqueues: false })),
      ).toMatch(/^q 0 /);
      expect(await call(one, schema, 'check_waiters', ['n', [Buffer.from('a')], ['next'], null])).toBe(
        '-1\n',
      );
      expect(await holderOf('a')).toEqual({ id: null });
      const check = await call(one, schema, 'check_waiters', ['p', [Buffer.from('a')], ['polling'], null]);
      expect(check).toMatch(/\n\npolling \d+$/);
      expect(await holderOf('a')).toEqual({ id: 'polling' });
    },
  );

  it('a client that listens stays known to the store for as long as its listener lives', async () => {
    const { schema, one, listen } = await sessions();
    const dying = await listen('dying');
    await listen('living');
    await dying.end();
    const left = `SELECT client FROM ${schema}.clients`;
    await one.query(`UPDATE ${schema}.clients SET alive_until = clock_timestamp() - interval '2 minutes'`);
    const sweep = async () => {
      await one.query(`UPDATE ${schema}.schema_version SET swept_at = swept_at - interval '1 hour'`);
      await call(one, schema, 'sweep', []);
      return (await one.query(left)).rows.length === 1;
    };
    await waitUntil(sweep, { what: 'the client whose listener ended to be removed' });
    expect((await one.query(left)).rows).toEqual([{ client: 'living' }]);
  });

  it('no row of a resource, a waiter or a silent client stays', async () => {
    const { schema, one } = await sessions();
    await call(one, schema, 'acquire', acquireValues('gone', 'crashed', 'c', { ttlMs: 1 }));
    await call(one, schema, 'acquire', acquireValues('held', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('held', 'waiter', 'w'));
    await one.query(`UPDATE ${schema}.clients SET alive_until = clock_timestamp() - interval '2 minutes'`);
    await call(one, schema, 'release', [Buffer.from('held'), 'holder', 'h']);
    await one.query(`UPDATE ${schema}.schema_version SET swept_at = swept_at - interval '1 hour'`);
    await call(one, schema, 'sweep', []);
    for (const table of ['locks', 'shares', 'waiters', 'clients'])
      expect((await one.query(`SELECT * FROM ${schema}.${table}`)).rows).toEqual([]);
  });

  it('a waiter attempts again after the row of its resource was deleted by hand', async () => {
    const schema = fixture.schema();
    const [holder, waiter] = [fixture.locks({ schema }), fixture.locks({ schema })];
    await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await waitUntil(async () => (await holder.inspect('a')).waiters.length === 1, { what: 'a waiter' });
    await fixture.server.query(`DELETE FROM ${schema}.locks`);
    await (await entered).release();
    expect(await fixture.server.query(`SELECT 1 FROM ${schema}.waiters`)).toEqual([]);
  });

  it('a message of an earlier hand-off, which lapsed before the waiter queued again, is ignored', async () => {
    const schema = fixture.schema();
    const [holder, waiter] = [fixture.locks({ schema }), fixture.locks({ schema })];
    const lease = await holder.lock('a').acquire();
    const entering = waiter.lock('a').acquire({ waitMs: 10_000 });
    const listening = `SELECT w.id FROM ${schema}.waiters w JOIN ${schema}.clients c ON c.client = w.client WHERE c.listener IS NOT NULL`;
    await waitUntil(async () => (await fixture.server.query(listening)).length === 1, {
      what: 'a waiter that listens',
    });
    await fixture.server.query(
      `SELECT pg_notify('locks_' || client, id || ' ${lease.fencingToken}') FROM ${schema}.waiters`,
    );
    await lease.release();
    // The message of the release came after the stale one.
    const next = await entering;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    expect((await holder.inspect('a')).holders[0]?.fencingToken).toBe(next.fencingToken);
    await next.release();
  });

  it('a backend without a listener polls for all its waiters, and is handed nothing between its polls', async () => {
    const schema = fixture.schema();
    const [holder, waiter] = [fixture.locks({ schema }), fixture.locks({ schema, listen: false })];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await waitUntil(async () => (await holder.inspect('a')).waiters.length === 1, { what: 'a waiter' });
    expect(await fixture.server.query(`SELECT listener FROM ${schema}.clients`)).toEqual([
      { listener: null },
    ]);
    const releasedAt = performance.now();
    await lease.release();
    await (await entered).release();
    expect(performance.now() - releasedAt).toBeLessThan(900);
  });

  it('a name is bytes: NUL, case and trailing spaces make another lock', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    const names = ['a', 'A', 'a ', 'a\0', '\0', "'; DROP TABLE", '\\x61', 'ä', 'a\u0308'];
    const leases = await Promise.all(names.map((name) => locks.lock(name).acquire({ waitMs: 0 })));
    expect(leases).toHaveLength(names.length);
    const listed: string[] = [];
    for await (const { name } of locks.list('a')) listed.push(name);
    expect(listed.sort()).toEqual(['a', 'a ', 'a\0', 'a\u0308'].sort());
    await Promise.all(leases.map((lease) => lease.release()));
  });
});

describe('a queue with a limit', () => {
  it('counts no waiter of a client that died, and keeps those of a client that polls', async () => {
    const { schema, one, listen } = await sessions();
    const limited = (id: string, client: string, maxWaiters: number) =>
      call(one, schema, 'acquire', acquireValues('a', id, client, { maxWaiters }));
    expect(await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'))).toMatch(/^g /);
    const listener = await listen('listening');
    expect(await limited('w1', 'listening', 2)).toMatch(/^q [1-9]/);
    expect(await limited('w2', 'silent', 2)).toMatch(/^q [1-9]/);
    expect(await limited('w3', 'polling', 2)).toBe('f');
    await listener.query('SELECT pg_advisory_unlock_all()');
    expect(await limited('w3', 'polling', 2)).toMatch(/^q [1-9]/);
    expect(await limited('w4', 'polling', 2)).toBe('f');
    await one.query(`UPDATE ${schema}.clients SET alive_until = now() WHERE client = 'silent'`);
    expect(await limited('w4', 'polling', 2)).toMatch(/^q [1-9]/);
    expect(await limited('w5', 'late', 2)).toBe('f');
    const { rows } = await one.query<{ id: string }>(`SELECT id FROM ${schema}.waiters ORDER BY ticket`);
    expect(rows.map(({ id }) => id)).toEqual(['w3', 'w4']);
  });
});

it('a check of the waiters that gets its connection right after a stall of the event loop is sent', async () => {
  const { schema, one, holderOf } = await sessions();
  const pool = fixture.pool({ max: 1 });
  const backend = fixture.backend({ schema, pool, listen: false });
  const time: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  const request = {
    resource: 'a',
    acquisitionId: 'waits',
    mode: { kind: 'exclusive' },
    ttlMs: 60_000,
  } as const;
  await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
  expect(await backend.attempt(request, true, time)).toEqual({ status: 'contended' });
  const turn = backend.awaitTurn?.(request, time);
  const client = await pool.connect();
  await waitUntil(() => pool.waitingCount === 1, { what: 'a check to wait for a connection' });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_300);
  client.release();
  await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
  // A check that was not sent would end the wait with its error.
  expect(await turn).toMatchObject({ request });
  expect(await holderOf('a')).toEqual({ id: 'waits' });
});
