import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { reportWriter } from '../src/shared-with-java.ts';

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

// contract-tests/test/redisson-java.test.ts runs the real Redisson; here the commands of its scripts stand for it.
it('is written once, by Java or by Node, and with a token above that of the other', async () => {
  const redis = new Redis(server.url);
  const reports = new Map<string, bigint>();
  const writer = reportWriter(redis, {
    isWritten: async (day) => reports.has(day),
    write: async (day, _text, token) => void reports.set(day, token),
  });
  const render = async (): Promise<string> => 'text';
  expect(await writer.write('monday', render)).toBe('written');
  expect(reports.get('monday')).toBe(1n);

  const token = BigInt((await server.command('INCR', 'redisson_lock_token:{report}')) as number);
  await server.command('HSET', 'report', '285475da-9152-4c83-822a-67ee2f116a79:52', '1');
  const writing = writer.write('tuesday', render);
  const channel = 'redisson_lock__channel:{report}';
  const listeners = async () => ((await server.command('PUBSUB', 'NUMSUB', channel)) as unknown[])[1];
  await waitUntil(async () => Number(await listeners()) === 1, { what: 'a waiter that listens' });
  reports.set('tuesday', token);
  await server.command('DEL', 'report');
  await server.command('PUBLISH', channel, '0');
  expect(await writing).toBe('there');

  expect(await writer.write('wednesday', render)).toBe('written');
  expect(reports.get('wednesday')).toBeGreaterThan(token);
  await writer.close();
  await redis.quit();
});
