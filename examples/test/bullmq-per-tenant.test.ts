import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { type Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWorker, type TenantJob } from '../src/schedulers/bullmq-per-tenant.ts';

const WORKERS = 4;

let server: RedisServer;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  server = await startRedis();
  stack.defer(() => server.stop());
});
afterAll(() => stack.disposeAsync());

it('four workers run three jobs of a tenant at a time, every job once, and another tenant does not wait', async () => {
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  const done: string[] = [];
  const work = async ({ id = '', data: { tenant } }: Job<TenantJob>): Promise<void> => {
    const now = (running.get(tenant) ?? 0) + 1;
    running.set(tenant, now);
    most.set(tenant, Math.max(most.get(tenant) ?? 0, now));
    await sleep(tenant === 'big' ? 100 : 1);
    running.set(tenant, (running.get(tenant) ?? 1) - 1);
    done.push(`${tenant} ${id}`);
  };
  const failures: unknown[] = [];
  for (let index = 0; index < WORKERS; index += 1) {
    const connection = new Redis(server.url, { maxRetriesPerRequest: null });
    const locks = createLocks(redisBackend(connection));
    const worker = startWorker(locks, work, connection);
    worker.on('failed', (_job, error) => failures.push(error));
    worker.on('error', (error) => failures.push(error));
    stack.defer(() => connection.disconnect());
    stack.defer(() => locks.close());
    stack.defer(() => worker.close());
  }
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const queue = new Queue<TenantJob>('reports', { connection });
  stack.defer(() => connection.disconnect());
  stack.defer(() => queue.close());
  await queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'report', data: { tenant: 'big' } })));
  await queue.add('report', { tenant: 'small' });
  const countOf = (tenant: string): number => done.filter((one) => one.startsWith(tenant)).length;
  await waitUntil(() => countOf('small') === 1, { what: 'the job of the other tenant' });
  // All workers together could have run 40 at once.
  expect(countOf('big')).toBeLessThan(30);
  await waitUntil(() => countOf('big') === 30, { what: 'all jobs', timeoutMs: 60_000 });
  expect(most.get('big')).toBe(3);
  expect(new Set(done).size).toBe(31);
  expect(failures).toEqual([]);
}, 120_000);
