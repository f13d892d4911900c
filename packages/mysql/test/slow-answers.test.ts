import type { LockBackend } from '@locks/core/backend';
import { expect, it } from 'vitest';
import { acquire, call, freshPrefix, open, request, sql, take, until, useServer } from './fixture.ts';
import { heldPool } from './held-pool.ts';

useServer();

const isUpdate = (sql: string): boolean => sql.startsWith('UPDATE');
const isBeat = (sql: string): boolean => sql.includes('seen_at') && sql.startsWith('INSERT');
/** The poller's question, which tells what is known already. */
const isLook = (sql: string): boolean => sql.startsWith('SELECT') && sql.includes('IF(version IN');

/** The poller gives up who was silent for 3 s, and tells each time that this process lives. */
async function untilSilenceIsNoticed(sent: readonly string[]): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 3_050));
  const before = sent.filter(isBeat).length;
  await until(() => sent.filter(isBeat).length > before);
}

async function waitersOf(backend: LockBackend, resource: string): Promise<readonly string[]> {
  return (await backend.inspect(resource, call)).waiters.map(({ acquisitionId }) => acquisitionId);
}

it('an attempt that takes longer than the silence of a dead client, and is granted, keeps its hold', async () => {
  const tablePrefix = freshPrefix();
  const { pool, sent, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, requestTimeoutMs: 30_000 })];
  const grant = await take(one, request('a'));
  const wanted = request('a', { ttlMs: 30_000 });
  expect((await two.attempt(wanted, true, call)).status).toBe('contended');
  await one.release(grant, call);
  const taking = hold('answer', isUpdate);
  const attempt = two.attempt(wanted, true, call);
  await taking.reached;
  await untilSilenceIsNoticed(sent);
  taking.letGo();
  const granted = await attempt;
  if (granted.status !== 'granted') return expect.fail(granted.status);
  expect(await two.renew([{ grant: granted.grant, ttlMs: 30_000 }], call)).toEqual([{ status: 'held' }]);
  const { holders } = await one.inspect('a', call);
  expect(holders).toMatchObject([{ acquisitionId: wanted.acquisitionId }]);
});

it('the abandon of a waiter that was silent does not end the lease that its next attempt took', async () => {
  const tablePrefix = freshPrefix();
  const { pool, sent, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, requestTimeoutMs: 7_000 })];
  await take(one, request('a', { ttlMs: 60_000 }));
  const silent = request('a', { ttlMs: 30_000 });
  await two.attempt(silent, true, call);
  const write = hold('answer', isUpdate);
  const failing = two.attempt(request('a'), true, call);
  await write.reached;
  // Its abandon waits for that write, and so does its attempt; then nothing is known of the row, and it is free.
  await untilSilenceIsNoticed(sent);
  const attempt = two.attempt(silent, true, call);
  await sql(`DELETE FROM locks.${tablePrefix}locks WHERE name = 'a'`);
  await expect(failing).rejects.toMatchObject({ code: 'NO_ANSWER' });
  const granted = await attempt;
  if (granted.status !== 'granted') return expect.fail(granted.status);
  await two.renew([], call);
  expect((await one.inspect('a', call)).holders).toMatchObject([{ acquisitionId: silent.acquisitionId }]);
  expect(await two.renew([{ grant: granted.grant, ttlMs: 30_000 }], call)).toEqual([{ status: 'held' }]);
});

it('an attempt that takes longer than the silence of a dead client stays in the queue', async () => {
  const tablePrefix = freshPrefix();
  const { pool, sent, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, requestTimeoutMs: 30_000 })];
  await take(one, request('a', { ttlMs: 60_000 }));
  const [first, second, third] = [request('a'), request('a'), request('a')];
  await two.attempt(first, true, call);
  const write = hold('statement', isUpdate);
  const attempts = Promise.all([two.attempt(first, true, call), two.attempt(third, true, call)]);
  await write.reached;
  await untilSilenceIsNoticed(sent);
  // The write that is on its way comes too late, and is decided again.
  await one.attempt(second, true, call);
  write.letGo();
  expect(await attempts).toEqual([{ status: 'contended' }, { status: 'contended' }]);
  await two.renew([], call);
  expect(await waitersOf(one, 'a')).toEqual([first, second, third].map((each) => each.acquisitionId));
});

it('a waiter that attempts again while it is being abandoned, and is in time, stays in the queue', async () => {
  const tablePrefix = freshPrefix();
  const { pool, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool })];
  await take(one, request('a', { ttlMs: 60_000 }));
  const [first, second] = [request('a'), request('a')];
  await two.attempt(first, true, call);
  const clearing = hold('statement', isUpdate);
  await clearing.reached;
  // The write that is on its way comes too late, and is decided again.
  await one.attempt(second, true, call);
  const attempt = two.attempt(first, true, call);
  clearing.letGo();
  expect(await attempt).toEqual({ status: 'contended' });
  expect(await waitersOf(one, 'a')).toEqual([first, second].map((each) => each.acquisitionId));
});

it('an attempt that got no answer stays in the queue until it is repeated', async () => {
  const tablePrefix = freshPrefix();
  const { pool, sent, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, requestTimeoutMs: 1_000 })];
  await take(one, request('a', { ttlMs: 60_000 }));
  const [first, second, third] = [request('a'), request('a'), request('a')];
  // It looks for all of its process.
  await two.attempt(first, true, call);
  const turn = two.awaitTurn?.(first, call);
  const write = hold('answer', (sql) => isUpdate(sql) && sql.includes('waiting = 2'));
  const attempt = two.attempt(second, true, call);
  await write.reached;
  await expect(attempt).rejects.toMatchObject({ code: 'NO_ANSWER' });
  await one.attempt(third, true, call);
  const before = sent.length;
  await until(() => sent.slice(before).filter(isLook).length >= 3);
  expect((await two.attempt(second, true, call)).status).toBe('contended');
  expect(await waitersOf(one, 'a')).toEqual([first, second, third].map((each) => each.acquisitionId));
  await two.abandon(first, call);
  expect(await turn).toBeUndefined();
});

it('a poll that is answered after a later write does not set back what is known', async () => {
  const tablePrefix = freshPrefix();
  const { pool, sent, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, maxPollMs: 50 })];
  const grant = await take(two, request('a', { ttlMs: 60_000 }));
  const wanted = request('a', { ttlMs: 60_000 });
  const turn = acquire(two, wanted);
  await until(async () => (await waitersOf(one, 'a')).length === 1);
  await one.attempt(request('a'), true, call);
  const look = hold('answer', isLook);
  await look.reached;
  await two.release(grant, call);
  const granted = await turn;
  const before = sent.length;
  look.letGo();
  await new Promise((resolve) => setImmediate(resolve));
  expect(await two.renew([{ grant: granted, ttlMs: 60_000 }], call)).toEqual([{ status: 'held' }]);
  expect(sent.slice(before).filter((sql) => !isBeat(sql))).toHaveLength(1);
});

it('a poll that is answered after its row was made anew does not end the hold in it', async () => {
  const tablePrefix = freshPrefix();
  const { pool, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, maxPollMs: 50 })];
  await take(one, request('a'));
  const wanted = request('a', { ttlMs: 60_000 });
  await two.attempt(wanted, true, call);
  const turn = two.awaitTurn?.(wanted, call);
  await one.attempt(request('a'), true, call);
  const look = hold('answer', isLook);
  await look.reached;
  await sql(`DELETE FROM locks.${tablePrefix}locks WHERE name = 'a'`);
  const grant = await take(two, wanted);
  await turn;
  look.letGo();
  await new Promise((resolve) => setImmediate(resolve));
  expect(await two.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([{ status: 'held' }]);
});

it('a waiter that came after a poll is not passed over because of its late answer', async () => {
  const tablePrefix = freshPrefix();
  const { pool, hold } = heldPool();
  const [one, two] = [open({ tablePrefix }), open({ tablePrefix, pool, maxPollMs: 50 })];
  const [grant, other] = [await take(two, request('a')), await take(one, request('b'))];
  const looking = acquire(two, request('b'));
  await until(async () => (await waitersOf(one, 'b')).length === 1);
  const look = hold('answer', isLook);
  await look.reached;
  const wanted = request('a');
  await one.attempt(wanted, true, call);
  // Finds the waiter, and that its process lives.
  expect((await two.attempt(request('a'), false, call)).status).toBe('contended');
  look.letGo();
  await new Promise((resolve) => setImmediate(resolve));
  await two.release(grant, call);
  expect(await waitersOf(one, 'a')).toEqual([wanted.acquisitionId]);
  await one.release(other, call);
  await two.release(await looking, call);
});
