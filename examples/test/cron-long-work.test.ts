import { createLocks, type LockManager } from '@locks/core';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Cron } from 'croner';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import makeBackend from '../src/schedulers/bullmq-locks-backend.ts';
import { openLocks } from '../src/schedulers/bullmq-long-work.ts';

const TTL_MS = 1_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
  process.env['REDIS_URL'] = server.url;
});
afterAll(() => server.stop());

/** Gives what the first job of croner comes to, which blocks the event loop for three ttls: its lock is lost, or not. */
function firstJob(locks: LockManager): Promise<void> {
  onTestFinished(() => locks.close());
  return new Promise((resolve, reject) => {
    const job = (): Promise<void> =>
      locks.lock('report').run(() => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * TTL_MS);
      });
    const cron = new Cron('* * * * * *', { maxRuns: 1, protect: true }, () => job().then(resolve, reject));
    onTestFinished(() => cron.stop());
  });
}

it('a job of croner keeps its lock while it blocks the event loop, with a renewal thread', async () => {
  await firstJob(openLocks(TTL_MS));
});

it('a job of croner loses its lock while it blocks the event loop, without one', async () => {
  const locks = createLocks(makeBackend(), { ttlMs: TTL_MS });
  await expect(firstJob(locks)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});
