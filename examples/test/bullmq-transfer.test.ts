import { createLocks, type FencedLockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ResizeJob, startWorker, upload } from '../src/schedulers/bullmq-transfer.ts';

let server: RedisServer;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  server = await startRedis();
  stack.defer(() => server.stop());
});
afterAll(() => stack.disposeAsync());

function client(): { readonly locks: FencedLockManager; readonly connection: Redis } {
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const locks = createLocks(redisBackend(connection));
  stack.defer(() => connection.disconnect());
  stack.defer(() => locks.close());
  return { locks, connection };
}

it('the lock of an upload goes on in the worker, with a higher token, and is free nowhere in between', async () => {
  const [web, background, other] = [client(), client(), client()];
  const queue = new Queue<ResizeJob>('images', { connection: web.connection });
  stack.defer(() => queue.close());
  const lock = other.locks.lock('image:cat.png');
  const tokens: bigint[] = [];
  const isFree = async (): Promise<boolean> => (await lock.tryAcquire()) !== undefined;
  await upload(web.locks, queue, 'cat.png', async ({ fencingToken }) => void tokens.push(fencingToken));
  // The process of the upload may end now.
  await web.locks.close();
  expect(await isFree()).toBe(false);
  let runs = 0;
  const worker = startWorker(
    background.locks,
    async (_image, { fencingToken }) => {
      runs += 1;
      tokens.push(fencingToken);
      expect(await isFree()).toBe(false);
    },
    background.connection,
  );
  const failures: unknown[] = [];
  worker.on('failed', (_job, error) => failures.push(error));
  await waitUntil(async () => !(await other.locks.isLocked('image:cat.png')), { what: 'the end of the job' });
  await worker.close();
  expect([runs, failures]).toEqual([1, []]);
  expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint);
}, 60_000);

it('a job whose ticket was used before takes the lock like anybody else; an upload that fails releases it', async () => {
  const { locks, connection } = client();
  const queue = new Queue<ResizeJob>('images', { connection });
  stack.defer(() => queue.close());
  const ticket = { version: 1, name: 'image:dog.png', acquisitionId: 'used', ttlMs: 1_000 } as const;
  await queue.add('resize', { image: 'dog.png', ticket });
  const done = await new Promise<string>((resolve) => {
    const worker = startWorker(locks, async (image) => resolve(image), connection);
    stack.defer(() => worker.close());
  });
  expect(done).toBe('dog.png');
  const failing = upload(locks, queue, 'cow.png', () => Promise.reject(new Error('the disk is full')));
  await expect(failing).rejects.toThrow('the disk is full');
  expect(await locks.isLocked('image:cow.png')).toBe(false);
}, 60_000);
