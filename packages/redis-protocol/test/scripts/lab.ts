import { waitUntil } from '@locks/test-servers';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { beforeAll } from 'vitest';
import { ScriptClient } from './script-client.ts';

export { fresh, redis } from '@locks/test-servers/redis-clients/use-redis';

/** Runs scripts on the server of one test file. */
export let client: ScriptClient;

export function useServer(): void {
  useRedis();
  beforeAll(() => {
    client = new ScriptClient(redis);
  });
}

/** The word that a reply of `acquire` begins with; a token alone stands for `granted`. */
export const word = (reply: unknown) => {
  const first = String(Array.isArray(reply) ? reply[0] : reply);
  return /^\d+$/.test(first) ? 'granted' : first;
};
/** The number behind the word: the token of a grant, the position of a waiter. */
export const number = (reply: unknown) => Number(Array.isArray(reply) ? reply[1] : reply);
export const waits = (reply: unknown) => word(reply) === 'waiting';
export const exists = (name: string) =>
  redis.command('EXISTS', ...client.allKeys(name).filter((_, at) => at !== 1));
/** Attempts until the lock is granted. */
export const isGranted = (name: string, id: string, mode = '0:', options: { ttlMs?: number } = {}) =>
  waitUntil(async () => word(await client.take(name, id, mode, options)) === 'granted', {
    what: `the grant of ${id}`,
    timeoutMs: 2_000,
  });
/** Lets queues exist in the slot of a resource, so that no attempt takes the fast path. */
export const expectQueues = (name: string) =>
  redis.command('SET', client.keys(name)[1], `1;${Date.now() + 60_000}`);
