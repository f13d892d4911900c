import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll } from 'vitest';
import { ScriptClient } from './script-client.ts';

/** A server for the tests of one file, and how they speak to it. */
export let redis: RedisServer;
export let client: ScriptClient;

beforeAll(async () => {
  redis = await startRedis();
  client = new ScriptClient(redis);
});
afterAll(() => redis.stop());

let count = 0;
export const fresh = () => `resource-${++count}`;
export const first = (reply: unknown) => Number(Array.isArray(reply) ? reply[0] : reply);
export const waits = (reply: unknown) => first(reply) < 0;
export const exists = (name: string) =>
  redis.command('EXISTS', ...client.allKeys(name).filter((_, at) => at !== 1));
/** Asks until it is let in. */
export const enters = (name: string, id: string, mode = '0:', options: { ttlMs?: number } = {}) =>
  waitUntil(async () => first(await client.take(name, id, mode, options)) > 0, {
    what: `${id} to be let in`,
    timeoutMs: 2_000,
  });
/** Queues may exist in its slot: nobody passes by the closer look. */
export const expectQueues = (name: string) =>
  redis.command('SET', client.keys(name)[1], `1;${Date.now() + 60_000}`);
