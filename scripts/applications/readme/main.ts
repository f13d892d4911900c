// Runs the code of the root's README, on Redis: what the code asks of its application stands here, then each block runs as it
// is written. Prints what happened.
import { createLocks } from '@locks/core';
import { textRecord } from '@locks/once';
import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';
import { blocks } from './blocks';

const done: Record<string, unknown[]> = {};
const note = (what: string) => async (value?: unknown) => {
  (done[what] ??= []).push(typeof value === 'bigint' ? 'token' : (value ?? 'called'));
};

async function main() {
  const redis = new Redis(process.env['REDIS_URL'] as string);
  const server = createServer((_request, response) => void note('fetched')().then(() => response.end()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = server.address() as { port: number };

  const run = randomUUID();
  let fence = 0n;
  let units = 5;
  const stopping = new AbortController();
  Object.assign(globalThis, {
    url: `http://127.0.0.1:${port}/`,
    // The statement of the README on a row that only this program has.
    db: {
      async query(_sql: string, [token]: [bigint]) {
        if (fence > token) return { rowCount: 0 };
        fence = token;
        units -= 1;
        return { rowCount: 1 };
      },
    },
    // Keys of this run: another one on the same Redis has done today's job already.
    record: textRecord({
      get: (key) => redis.get(`${run}:${key}`),
      set: (key, value, token) => fencedSet(redis, `${run}:${key}`, value, token),
    }),
    stopping: stopping.signal,
    locks: createLocks(redisBackend(redis)),
    sell: note('sold'),
    sendInvoices: () => note('sent invoices')(),
    async schedule() {
      await note('led')();
      stopping.abort();
    },
    rebuild: () => note('rebuilt')(),
    send: () => note('sent')(),
    transfer: (tokens: readonly unknown[]) => note('transferred')(tokens.length),
    deduct: (warehouse: string, sku: string) => note('deducted')(`${warehouse} ${sku}`),
  });
  for (const block of blocks) await block();
  console.log(JSON.stringify({ ...done, units }));
  // The clients of the README's code belong to it.
  process.exit(0);
}

void main();
