import { readFileSync } from 'node:fs';
import { call, type RedisServer, request, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { redissonBackend } from '../src/ioredis.ts';
import { openers, startRedis } from './setup.ts';

let redis: RedisServer;
const clients: Redis[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});
afterAll(() => redis.stop());

/** The rights that the page names, for a lock. */
function documentedRights(name: string): string[] {
  const page = readFileSync(new URL('../../../docs/backends/redisson.md', import.meta.url), 'utf8');
  const [, text = ''] = /\*\*Rights of an ACL user:\*\* ([^]*?)\n- /.exec(page) ?? [];
  return [...text.matchAll(/(?<=[` \n])[~&+][^\s`]+/g)].map(([right]) => right.replace('NAME', name));
}

async function user(name: string, rights: readonly string[]): Promise<Redis> {
  await redis.command('ACL', 'SETUSER', name, 'on', '>secret', 'resetchannels', '+info', ...rights);
  const client = new Redis({ port: redis.port, username: name, password: 'secret' });
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

it('all works with the rights that the page names', async () => {
  const rights = documentedRights('granted');
  expect(rights.length).toBeGreaterThan(20);
  await using other = await openers.ioredis(redis);
  const backend = redissonBackend(await user('granted', rights), { fencing: true, maxPollMs: 60_000 });
  const taken = await other.take('granted');
  const wanted = request('granted');
  expect((await backend.attempt(wanted, true, call)).status).toBe('contended');
  expect(await backend.awaitTurn?.(wanted, call)).toBeUndefined();
  await other.backend.release(taken, call);
  const attempt = await backend.attempt(request('granted'), true, call);
  if (attempt.status !== 'granted') throw new Error(attempt.status);
  expect(await backend.renew([{ grant: attempt.grant, ttlMs: 1_000 }], call)).toEqual([{ status: 'held' }]);
  expect((await backend.inspect('granted', call)).holders).toHaveLength(1);
  expect(await backend.release(attempt.grant, call)).toBe('released');
  await backend.ping?.(call);
  await backend.close();
});

it('without the right to the channel waiters ask at the interval of the checks, and one warning says why', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  await using other = await openers.ioredis(redis);
  const client = await user('deaf', ['~*', '+@all']);
  const backend = redissonBackend(client, { maxPollMs: 100 });
  const taken = await other.take('deaf');
  const wanted = request('deaf');
  const attempt = await backend.attempt(wanted, true, call);
  expect(attempt).toEqual({ status: 'contended', retryAfterMs: 100 });
  // The refusal of the channel is a hint too: nothing was missed by then that a new attempt would not find.
  expect(await backend.awaitTurn?.(wanted, call)).toBeUndefined();
  await waitUntil(() => warnings.length > 0, { what: 'a warning' });
  expect(warnings[0]).toMatchObject({ code: 'LOCKS_REDISSON_CHANNEL' });
  expect(warnings[0]?.message).toContain('&redisson_lock__channel:*');
  await other.backend.release(taken, call);
  const own = await backend.attempt(request('deaf'), true, call);
  if (own.status !== 'granted') throw new Error(own.status);
  // Waiters of other processes would not hear of it.
  await expect(backend.release(own.grant, call)).rejects.toThrow(/publish/);
  expect(warnings).toHaveLength(1);
  process.off('warning', onWarning);
  await backend.close();
});
