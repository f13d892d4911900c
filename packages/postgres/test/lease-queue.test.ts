import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateLeaseSchema } from '../src/index.ts';
import { acquireValues, call, LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A schema and two sessions that call its functions by hand. */
async function sessions() {
  const schema = fixture.schema();
  await migrateLeaseSchema({ connectionString: fixture.server.url, schema });
  const [one, two] = [await fixture.session(), await fixture.session()];
  const holderOf = async (name: string) =>
    (await one.query(`SELECT id FROM ${schema}.locks WHERE name = $1`, [Buffer.from(name)]))
      .rows[0] as unknown;
  const { processID: pid } = two as unknown as { readonly processID: number };
  const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND pid = ${pid}`;
  const blocked = async () => (await fixture.server.query(waiting)).length > 0;
  return { schema, one, two, holderOf, blocked };
}

describe.concurrent('the queue', () => {
  it('a release that meets an enqueue not yet committed hands off to it: no wake-up is lost', async () => {
    const { schema, one, two, holderOf, blocked } = await sessions();
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

  it('a check that was sent before the hand-off extends it to the claim time only: the client may be dead', async () => {
    const { schema, one } = await sessions();
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'waiter', 'w'));
    await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    const check = ['w', [Buffer.from('a')], ['waiter'], [30_000], true];
    const leftMs = Number((await call(one, schema, 'check_waiters', check)).split('\n')[1]?.split(' ')[3]);
    expect(leftMs).toBeGreaterThan(1_500);
    expect(leftMs).toBeLessThanOrEqual(2_000);
  });

  it('a check does not shorten the lease of an attempt', async () => {
    const { schema, one } = await sessions();
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    const check = ['h', [Buffer.from('a')], ['holder'], [30_000], true];
    const leftMs = Number((await call(one, schema, 'check_waiters', check)).split('\n')[1]?.split(' ')[3]);
    expect(leftMs).toBeGreaterThan(2_000);
  });

  it('an attempt waits for a renewal not yet committed before it counts a share as expired', async () => {
    const { schema, one, two, blocked } = await sessions();
    const share = [Buffer.from('a'), 'reader', 1, 1, null, 400, 'reader', 'h', 0];
    const granted = await call(one, schema, 'acquire', share);
    await one.query('BEGIN');
    const renewal = [[Buffer.from('a')], ['reader'], [granted.slice(2)], [20_000]];
    expect(await call(one, schema, 'renew', renewal)).toBe('h');
    await one.query('SELECT pg_sleep(0.5)');
    const attempt = call(two, schema, 'acquire', acquireValues('a', 'writer', 'w', 0));
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
    const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO "${schema}"%'`;
    await waitUntil(async () => (await fixture.server.query(waits)).length === 1, {
      what: 'the third to wait',
    });
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
    const { schema, one, holderOf } = await sessions();
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

  it('a stolen share is reported as taken over, also when a share stole it', async () => {
    const { schema, one } = await sessions();
    const share = (id: string, way: number) => [Buffer.from('a'), id, 1, 1, null, 20_000, id, 'h', way];
    const stolen = (await call(one, schema, 'acquire', share('holder', 0))).slice(2);
    const token = (await call(one, schema, 'acquire', share('stealing', 2))).slice(2);
    const renew = (id: string, of: string) =>
      call(one, schema, 'renew', [[Buffer.from('a')], [id], [of], [20_000]]);
    expect(await renew('holder', stolen)).toBe('t');
    expect(await renew('stealing', token)).toBe('h');
  });

  it('the release itself passes over a waiter of a silent process', async () => {
    const { schema, one, holderOf } = await sessions();
    await call(one, schema, 'acquire', acquireValues('a', 'holder', 'h'));
    await call(one, schema, 'acquire', acquireValues('a', 'dead', 'd'));
    await call(one, schema, 'acquire', acquireValues('a', 'next', 'n'));
    await one.query(`UPDATE ${schema}.clients SET alive_until = clock_timestamp() WHERE client = 'd'`);
    await call(one, schema, 'release', [Buffer.from('a'), 'holder', 'h']);
    expect(await holderOf('a')).toEqual({ id: 'next' });
  });

  it('no row of a resource, a waiter or a silent client stays', async () => {
    const { schema, one } = await sessions();
    await call(one, schema, 'acquire', acquireValues('gone', 'crashed', 'c', 1, 1));
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
    let entered = false;
    const entering = waiter
      .lock('a')
      .acquire({ waitMs: 10_000 })
      .then((next) => {
        entered = true;
        return next;
      });
    const waiting = `SELECT id, client FROM ${schema}.waiters`;
    await waitUntil(async () => (await fixture.server.query(waiting)).length === 1, { what: 'a waiter' });
    const listening = `SELECT 1 FROM pg_stat_activity WHERE application_name LIKE '%listener' AND query LIKE '%${schema}%'`;
    await waitUntil(async () => (await fixture.server.query(listening)).length === 1, { what: 'a listener' });
    const stale = `SELECT pg_notify('locks_' || client, id || ' ${lease.fencingToken} 20000') FROM ${schema}.waiters`;
    await fixture.server.query(stale);
    await sleep(200);
    expect(entered).toBe(false);
    // A message whose token is higher than the waiter's ticket is accepted.
    await fixture.server.query(
      stale.replace(` ${lease.fencingToken} `, ` ${(lease.fencingToken as bigint) + 1_000n} `),
    );
    await entering;
    expect(entered).toBe(true);
    await lease.release();
  });

  it('a backend without a listener polls for all its waiters, and is not notified', async () => {
    const schema = fixture.schema();
    const [holder, waiter] = [fixture.locks({ schema }), fixture.locks({ schema, listen: false })];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await waitUntil(async () => (await holder.inspect('a')).waiters.length === 1, { what: 'a waiter' });
    const [{ count } = { count: '' }] = await fixture.server.query(
      `SELECT count(*) FROM ${schema}.clients WHERE client LIKE '.%'`,
    );
    expect(count).toBe('1');
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
    for await (const { resource } of locks.list('a')) listed.push(resource);
    expect(listed.sort()).toEqual(['a', 'a ', 'a\0', 'a\u0308'].sort());
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
