import { createLocks } from '@locks/core';
import { call, request, startProxy } from '@locks/test-servers';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { expect, it } from 'vitest';
import { participant } from './participant.ts';

let count = 0;
/** A prefix that no other test uses. */
const fresh = () => `layout${++count}:`;

useRedis();

const keysOf = (prefix: string) => redis.command('KEYS', `*${prefix}*`);

it.each([
  ['newer', '2', 'NEWER_SCHEMA', 'upgrade this process'],
  ['older', '0', 'OLDER_SCHEMA', 'stop all processes of the older version, then delete the key layout'],
  ['unreadable', 'new and better', 'NEWER_SCHEMA', 'upgrade this process'],
])('a store with a %s layout is refused at once, and nothing is written', async (_, found, code, toDo) => {
  const prefix = fresh();
  await redis.command('SET', `${prefix}{layout}`, found);
  await using who = participant(redis, { prefix });
  await using locks = createLocks(who.backend);
  const refusal = { code: 'LOCK_BACKEND', cause: { name: 'StoreLayoutError', code } };
  await expect(locks.lock('a').acquire({ waitMs: 60_000 })).rejects.toMatchObject(refusal);
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refusal);
  await expect(
    locks.all([locks.lock('a'), locks.lock('b')]).acquire({ waitMs: 60_000 }),
  ).rejects.toMatchObject(refusal);
  await expect(locks.semaphore('s', 2).resize(3)).rejects.toMatchObject(refusal);
  const refused: unknown = await locks.forceRelease('a').catch((error: unknown) => error);
  expect(refused).toMatchObject(refusal);
  expect(String(refused).toLowerCase()).toContain(toDo);
  expect(await keysOf(prefix)).toEqual([`${prefix}{layout}`]);
  expect(await redis.command('GET', `${prefix}{layout}`)).toBe(found);
});

it('the first process marks the layout, others read the marker once, and no list shows it', async () => {
  const prefix = fresh();
  await using proxy = await startProxy(redis);
  await using first = participant(redis, { prefix });
  await using second = participant(proxy, { prefix });
  await first.take('a');
  expect(await redis.command('GET', `${prefix}{layout}`)).toBe('1');
  const grants = await Promise.all(['b', 'c', 'd'].map((name) => second.take(name)));
  for (const grant of grants) await second.backend.release(grant, call);
  expect(proxy.requestCounts()['GET']).toBe(1);
  expect(proxy.requestCounts()['SET']).toBeUndefined();
  const listed: string[] = [];
  for await (const { name } of first.backend.list?.('', call) ?? []) listed.push(name);
  expect(listed).toEqual(['a']);
});

it('of two processes that come first at once both go on', async () => {
  const prefix = fresh();
  await using a = participant(redis, { prefix });
  await using b = participant(redis, { prefix });
  await Promise.all([a.take('a'), b.take('b')]);
  expect(await redis.command('GET', `${prefix}{layout}`)).toBe('1');
});

it('a running process goes on in a store that was emptied, and the next process marks it again', async () => {
  const prefix = fresh();
  await using running = participant(redis, { prefix });
  await running.take('a');
  await redis.command('FLUSHALL');
  await running.take('a');
  expect(await redis.command('GET', `${prefix}{layout}`)).toBeNull();
  await using next = participant(redis, { prefix });
  await next.take('b');
  expect(await redis.command('GET', `${prefix}{layout}`)).toBe('1');
});

it('a process that has been refused acquires once the marker was deleted', async () => {
  const prefix = fresh();
  await redis.command('SET', `${prefix}{layout}`, '2');
  await using who = participant(redis, { prefix });
  await expect(who.take('a')).rejects.toMatchObject({ code: 'NEWER_SCHEMA' });
  await redis.command('DEL', `${prefix}{layout}`);
  await who.take('a');
});

it('who only looks needs no marker, and creates none', async () => {
  const prefix = fresh();
  await using who = participant(redis, { prefix });
  expect((await who.backend.inspect('a', call)).holders).toEqual([]);
  for await (const state of who.backend.list?.('', call) ?? []) expect(state).toBeUndefined();
  expect(await keysOf(prefix)).toEqual([]);
});

it('without a prefix the marker is no lock, in a list either', async () => {
  await redis.command('FLUSHALL');
  await using who = participant(redis, { prefix: '' });
  await who.take('bare');
  expect(await redis.command('GET', 'locks:{layout}')).toBe('1');
  const listed: string[] = [];
  for await (const { name } of who.backend.list?.('', call) ?? []) listed.push(name);
  expect(listed).toEqual(['bare']);
});

it('a user who may not create the marker, or not read it, is told which right is missing', async () => {
  const prefix = fresh();
  const rights = ['on', '>secret', `~${prefix}:*`, '~locks:token:*', '&*', '+@all'];
  await redis.command('ACL', 'SETUSER', 'narrow', ...rights);
  await redis.command('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@all', '-set');
  for (const [username, right] of [
    ['narrow', `Grant ~${prefix}{layout}`],
    ['reader', 'Grant +set'],
  ] as const) {
    await using who = participant(redis, { prefix }, { username, password: 'secret' });
    await expect(who.take('a')).rejects.toThrow(right);
  }
  expect(await keysOf(prefix)).toEqual([]);
});

it('an attempt whose caller has gone before the marker was read takes no lock', async () => {
  const prefix = fresh();
  await using proxy = await startProxy(redis);
  await using who = participant(proxy, { prefix });
  await who.client.ping();
  const controller = new AbortController();
  proxy.stall({ direction: 'toClient' });
  const attempt = who.backend.attempt(request('a'), false, { ...call, signal: controller.signal });
  controller.abort();
  await proxy.heal();
  expect(await attempt).toEqual({ status: 'contended' });
  expect(await redis.command('EXISTS', `${prefix}:a`)).toBe(0);
});
