import { call, granted, request, waitUntil } from '@locks/test-servers';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { expect, it } from 'vitest';
import { participant } from './participant.ts';

useRedis();

it('list gives each of thousands of locks once, whatever else is there', async () => {
  await using who = participant(redis);
  await using waiter = participant(redis);
  const names = Array.from({ length: 2_500 }, (_, index) => `job ${index}`);
  for (const name of names) granted(await who.backend.attempt(request(name), true, call));
  await waiter.queue(request('job 7'));
  await who.take('other');
  await redis.command('MSET', ...Array.from({ length: 2_000 }, (_, index) => [`lock;${index}`, 'x']).flat());
  await redis.command('HSET', 'lock::job of another type', 'a', 'b');
  const listed: string[] = [];
  for await (const { name } of who.backend.list?.('job ', call) ?? []) listed.push(name);
  expect(listed.toSorted()).toEqual(names.toSorted());
});

it.each(['garbage', '', '|', 'a|b|c'])(
  'a member of a queue that is none, %j, hides no other lock',
  async (member) => {
    await using who = participant(redis);
    const held = `held beside ${member}.`;
    await who.take(held);
    await redis.command('ZADD', '{lock::strange}:q', '1', member);
    const listed: string[] = [];
    for await (const { name } of who.backend.list?.(held, call) ?? []) listed.push(name);
    for await (const { name } of who.backend.list?.('strange', call) ?? []) listed.push(name);
    expect(listed).toEqual([held]);
    await redis.command('DEL', '{lock::strange}:q');
  },
);

it('without a prefix lists our locks and what is waited for, and not the data of the application', async () => {
  await using who = participant(redis, { prefix: '' });
  await using waiter = participant(redis, { prefix: '' });
  await who.take('bare:ours');
  await redis.command('SET', 'bare:session', 'a secret');
  await redis.command('SET', 'bare:theirs', 'of another library');
  await waiter.queue(request('bare:theirs'));
  const listed: string[] = [];
  for await (const { name } of who.backend.list?.('bare:', call) ?? []) listed.push(name);
  expect(listed.toSorted()).toEqual(['bare:ours', 'bare:theirs']);
  const channels = async () => (await redis.command('PUBSUB', 'CHANNELS', 'locks:ch:*')) as unknown[];
  await waitUntil(async () => (await channels()).length === 1, { what: 'the channel of the waiter' });
});
