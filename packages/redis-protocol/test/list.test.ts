import { call, granted, type RedisServer, request, startRedis } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { participant } from './participant.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

it('list gives each of thousands of locks once, whatever else is there', async () => {
  await using who = participant(redis);
  await using waiter = participant(redis);
  const names = Array.from({ length: 2_500 }, (_, index) => `job ${index}`);
  for (const name of names) granted(await who.backend.attempt(request(name), true, call));
  await waiter.queue(request('job 7'));
  await who.take('other');
  await redis.command('MSET', ...Array.from({ length: 2_000 }, (_, index) => [`lock;${index}`, 'x']).flat());
  await redis.command('HSET', 'lock:job of another type', 'a', 'b');
  const listed: string[] = [];
  for await (const { resource } of who.backend.list?.('job ', call) ?? []) listed.push(resource);
  expect(listed.toSorted()).toEqual(names.toSorted());
});

it.each(['garbage', '', '|', 'a|b|c'])(
  'a member of a queue that is none, %j, hides no other lock',
  async (member) => {
    await using who = participant(redis);
    const held = `held beside ${member}.`;
    await who.take(held);
    await redis.command('ZADD', '{lock:strange}:q', '1', member);
    const listed: string[] = [];
    for await (const { resource } of who.backend.list?.(held, call) ?? []) listed.push(resource);
    for await (const { resource } of who.backend.list?.('strange', call) ?? []) listed.push(resource);
    expect(listed).toEqual([held]);
    await redis.command('DEL', '{lock:strange}:q');
  },
);
