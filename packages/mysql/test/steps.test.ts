import type { Grant, LockMode } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import {
  acquire,
  call,
  callFor,
  freshPrefix,
  open,
  openPool,
  request,
  sql,
  take,
  theServer,
  until,
  useServer,
} from './fixture.ts';

useServer();

const shared: LockMode = { kind: 'shared' };

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

describe('what this process knows may be old', () => {
  it('a lease that ran out is not renewed, whether it was renewed before or not', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const fresh = await take(backend, request('a', { ttlMs: 100 }));
    const renewed = await take(backend, request('b', { ttlMs: 5_000 }));
    expect(await backend.renew([{ grant: renewed, ttlMs: 100 }], call)).toEqual([{ status: 'held' }]);
    await sleep(150);
    for (const grant of [fresh, renewed]) {
      expect(await backend.renew([{ grant, ttlMs: 5_000 }], call)).toEqual([
        { status: 'lost', reason: 'expired' },
      ]);
      expect(await backend.release(grant, call)).toBe('not-held');
    }
  });

  it('a waiter that is granted the lock before it waits has its lease without a poll', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const busy = await take(backend, request('busy'));
    const patient = acquire(backend, request('busy'));
    await sleep(2_500); // Nothing changes: the polls are rare by now.
    const tookMs: number[] = [];
    for (const name of ['a', 'b', 'c', 'd']) {
      const first = await take(backend, request(name));
      const second = acquire(backend, request(name));
      await sleep(50);
      await backend.release(first, call);
      const grant = await second;
      const startedAt = performance.now();
      const wanted = request(name);
      const attempt = backend.attempt(wanted, true, call);
      // Written as soon as the waiter is, before the answer to the attempt has been read.
      const released = backend.release(grant, call);
      await attempt;
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      const turned = await backend.awaitTurn?.(wanted, callFor(5_000));
      tookMs.push(performance.now() - startedAt);
      expect(await released).toBe('released');
      if (turned === undefined) return expect.fail('it has to attempt again');
      const next = turned;
      expect(next.countedFrom).toBeLessThan(performance.now());
      expect((await backend.inspect(name, call)).holders[0]?.expiresInMs).toBeGreaterThan(9_000);
      expect(await backend.renew([{ grant: next, ttlMs: 5_000 }], call)).toEqual([{ status: 'held' }]);
      await backend.release(next, call);
    }
    expect(Math.max(...tookMs)).toBeLessThan(250);
    await backend.release(busy, call);
    await backend.release(await patient, call);
  });

  it('a release sees the waiters of other processes that came since, and leaves the resource free for them', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grant = await take(one, request('a'));
    const waiting = request('a', { ttlMs: 9_000 });
    expect(await two.attempt(waiting, true, call)).toEqual({ status: 'contended' });
    expect(await one.release(grant, call)).toBe('released');
    const { holders, waiters } = await one.inspect('a', call);
    expect(holders).toEqual([]);
    expect(waiters).toMatchObject([{ acquisitionId: waiting.acquisitionId }]);
    expect(await one.attempt(request('a'), false, call)).toEqual({ status: 'contended' });
    const before = performance.now();
    const taken = await two.awaitTurn?.(waiting, callFor(5_000));
    // It counts from the write by which it took the lock itself.
    expect(taken?.countedFrom).toBeGreaterThan(before);
    expect((await one.inspect('a', call)).holders[0]?.expiresInMs).toBeGreaterThan(8_000);
  });

  it('a renewal of many finds the one that was taken away, and those that others have written to', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grants: Grant[] = [];
    for (const name of ['a', 'b', 'c', 'd']) grants.push(await take(one, request(name)));
    const renewAll = () =>
      one.renew(
        grants.map((grant) => ({ grant, ttlMs: 9_000 })),
        call,
      );
    expect(await renewAll()).toHaveLength(4);
    await two.attempt(request('b'), true, call);
    await two.forceRelease?.('c', undefined, call);
    expect(await renewAll()).toEqual([
      { status: 'held' },
      { status: 'held' },
      { status: 'lost', reason: 'force-released' },
      { status: 'held' },
    ]);
    expect((await two.inspect('b', call)).waiters).toHaveLength(1);
    expect((await two.inspect('c', call)).holders).toEqual([]);
  });

  it('a repeated attempt gets what is left of its lease from the store', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const wanted = request('a', { ttlMs: 3_000 });
    const first = await take(backend, wanted);
    await sleep(300);
    const again = await take(backend, wanted);
    expect(again.fencingToken).toBe(first.fencingToken);
    expect(again.validForMs).toBeLessThan(2_750);
    expect(again.validForMs).toBeGreaterThan(1_000);
  });
});

it('the store says what is left also when others queue in the same moment', async () => {
  const backend = open({ tablePrefix: freshPrefix() });
  const wanted = request('a', { ttlMs: 9_000 });
  const first = await take(backend, wanted);
  // From now on this process knows the whole state, as it was then.
  await backend.renew([{ grant: first, ttlMs: 3_000 }], call);
  await sleep(300);
  const [again, other] = await Promise.all([
    backend.attempt(wanted, false, call),
    backend.attempt(request('a'), true, call),
  ]);
  expect(other).toEqual({ status: 'contended' });
  if (again.status !== 'granted') return expect.fail('it was lost');
  expect(again.grant.validForMs).toBeLessThan(2_750);
});

describe('the queue', () => {
  it('is not overtaken by a single attempt, nor by a new name, while the resource is free for a moment', async () => {
    const tablePrefix = freshPrefix();
    const [one, two, three] = [open({ tablePrefix }), open({ tablePrefix }), open({ tablePrefix })];
    await take(one, request('a', { ttlMs: 1_000 }));
    const waiting = request('a');
    // The waiter does not poll: its turn comes, and it does not attempt at once.
    expect((await two.attempt(waiting, true, call)).status).toBe('contended');
    await sleep(1_060);
    expect((await three.attempt(request('a'), false, call)).status).toBe('contended');
    expect((await two.attempt(waiting, true, call)).status).toBe('granted');
  });

  it('is polled at the usual pace by a process that held the lock when its waiter began to wait', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix, maxPollMs: 50 }), open({ tablePrefix })];
    const held = await take(one, request('a'));
    const first = request('a');
    expect(await two.attempt(first, true, call)).toEqual({ status: 'contended' });
    const second = request('a');
    // In the queue, and nobody waits for its turn yet: until then only the heartbeat is due.
    expect(await one.attempt(second, true, call)).toEqual({ status: 'contended' });
    await sleep(100);
    const turn = acquire(one, second);
    await sleep(50);
    await one.release(held, call);
    const between = await acquire(two, first);
    const releasedAt = performance.now();
    await two.release(between, call);
    await turn;
    expect(performance.now() - releasedAt).toBeLessThan(500);
  });

  it('passes over a waiter whose process lives and no longer asks for it', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grant = await take(one, request('a'));
    const lazy = request('a');
    await two.attempt(lazy, true, call);
    await one.release(grant, call);
    const startedAt = performance.now();
    const next = await acquire(one, request('a'), callFor(8_000));
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await one.release(next, call);
  });

  it('passes over a head that leaves a free lock for 3 s, though its client lives', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grant = await take(one, request('a', { ttlMs: 20_000 }));
    const ghost = request('a', { ttlMs: 20_000 });
    await two.attempt(ghost, true, call);
    const [row] = await sql(`SELECT CAST(state AS CHAR) AS state FROM locks.${tablePrefix}locks`);
    await two.abandon(ghost, call);
    // Its client waits for another resource, so that it lives, and does not poll this one.
    const elsewhere = await take(one, request('b', { ttlMs: 20_000 }));
    const waiting = acquire(two, request('b'), callFor(15_000));
    await sql(
      `UPDATE locks.${tablePrefix}locks SET waiting = 1, version = 1, state = '${String(row?.['state'])}' WHERE name = 'a'`,
    );
    expect(await one.release(grant, call)).toBe('released');
    const [freeAt, behind] = [performance.now(), request('a')];
    const next = await acquire(one, behind, callFor(8_000));
    // As long as a silent client counts as alive: nobody loses its place sooner.
    expect(performance.now() - freeAt).toBeGreaterThan(2_990);
    expect((await one.inspect('a', call)).waiters).toEqual([]);
    await Promise.all([one.release(next, call), one.release(elsewhere, call)]);
    await two.release(await waiting, call);
  });

  it('ends a hold that it granted to an entry that nobody in its process asks for', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grant = await take(one, request('a'));
    const ghost = request('a');
    await one.attempt(ghost, true, call);
    const [row] = await sql(`SELECT CAST(state AS CHAR) AS state FROM locks.${tablePrefix}locks`);
    await one.abandon(ghost, call);
    const behind = acquire(two, request('a'), callFor(8_000));
    await until(async () => (await two.inspect('a', call)).waiters.length === 1);
    const [both] = await sql(`SELECT CAST(state AS CHAR) AS state FROM locks.${tablePrefix}locks`);
    const waitersIn = (state: unknown): unknown[] => JSON.parse(String(state)).waiters;
    const state = JSON.parse(String(both?.['state']));
    state.waiters = [...waitersIn(row?.['state']), ...state.waiters];
    await sql(
      `UPDATE locks.${tablePrefix}locks SET waiting = 2, version = 1, state = '${JSON.stringify(state)}' WHERE name = 'a'`,
    );
    // The release grants to the ghost, which is the head and of the same process.
    const startedAt = performance.now();
    expect(await one.release(grant, call)).toBe('released');
    await two.release(await behind, call);
    expect(performance.now() - startedAt).toBeLessThan(2_500);
  });

  it('drops an entry that a live process knows nothing of', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const reading = await take(one, request('a', { mode: shared }));
    // A writer of the second process, whose call was given up before the server got its statement.
    const ghost = request('a');
    await two.attempt(ghost, true, call);
    const [row] = await sql(`SELECT CAST(state AS CHAR) AS state FROM locks.${tablePrefix}locks`);
    await two.abandon(ghost, call);
    await sql(
      `UPDATE locks.${tablePrefix}locks SET waiting = 1, version = 1, state = '${String(row?.['state'])}'`,
    );
    const reader = acquire(two, request('a', { mode: shared }), callFor(8_000));
    const other = await reader;
    expect((await one.inspect('a', call)).waiters).toEqual([]);
    await Promise.all([one.release(reading, call), two.release(other, call)]);
  });
});

describe('an acquisition that is abandoned before anything was sent for it', () => {
  it('keeps nobody who came behind it from a free lock', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const abandoned = request('a');
    const first = backend.attempt(abandoned, true, callFor(5_000));
    const second = backend.attempt(request('a'), true, callFor(5_000));
    const done = backend.abandon(abandoned, callFor(5_000));
    expect((await second).status).toBe('granted');
    expect((await first).status).toBe('contended');
    await done;
  });
});

describe('the pool', () => {
  it('loses a connection whose answer is overdue, and no more than that', async () => {
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix, pool: openPool({ connectionLimit: 1 }), requestTimeoutMs: 300 });
    await backend.release(await take(backend, request('a')), call);
    const blocker = openPool({ connectionLimit: 1 }).promise();
    await blocker.query('SET autocommit = 0');
    await blocker.query(`SELECT * FROM ${tablePrefix}locks FOR UPDATE`);
    const failed: unknown = await backend.attempt(request('a'), false, call).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'NO_ANSWER' });
    expect(backend.isRetryable(failed)).toBe(true);
    expect((await backend.inspect('a', call)).holders).toEqual([]);
    await blocker.query('ROLLBACK');
    await until(async () => (await backend.attempt(request('b'), false, call)).status === 'granted');
  });

  it('reports at once an error that no repetition repairs', async () => {
    const uri = 'mysql://nobody:wrong@127.0.0.1';
    const backend = open({ tablePrefix: 'x_', url: `${uri}:${theServer().port}/locks` });
    const refused: unknown = await backend
      .attempt(request('a'), false, call)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ errno: 1045 });
    expect(backend.isRetryable(refused)).toBe(false);
  });
});
