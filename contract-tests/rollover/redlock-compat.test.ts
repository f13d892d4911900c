import { redisBackend } from '@locks/redis-ioredis';
import CompatibleRedlock from '@locks/redlock-compat';
import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import Redlock from 'redlock';
import { expect, it } from 'vitest';

const ONCE = { retryCount: 0 };
const TTL_MS = 30_000;

it.each([1, 3])('redlock 5 and our interface of it exclude each other on %i Redis', async (count) => {
  await using stack = new AsyncDisposableStack();
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
  for (const server of servers) stack.use(server);
  const clients = servers.map(({ url }) => [new Redis5(url), new Redis(url)] as const);
  stack.defer(() => clients.flat().forEach((client) => client.disconnect()));
  const theirs = new Redlock(clients.map(([client]) => client));
  const ours = new CompatibleRedlock(clients.map(([, client]) => redisBackend(client, { prefix: '' })));
  stack.defer(() => ours.quit());

  const old = await theirs.acquire(['a'], TTL_MS, ONCE);
  await expect(ours.acquire(['a'], TTL_MS, ONCE)).rejects.toThrow();
  await old.release();
  const lock = await ours.acquire(['a'], TTL_MS, { retryCount: 20 });
  await expect(theirs.acquire(['a'], TTL_MS, ONCE)).rejects.toThrow();
  await lock.release();
  await (await theirs.acquire(['a'], TTL_MS, { retryCount: 20 })).release();
});
