import { createLocks, type Lease } from '@locks/core';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { redisBackend } from '../src/index.ts';

const TIMEOUT_MS = 120_000;
let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

function openLocks() {
  const client = new Redis(server.url);
  const locks = createLocks(redisBackend(client), { ttlMs: TIMEOUT_MS, waitMs: TIMEOUT_MS });
  onTestFinished(async () => {
    await locks.close();
    client.disconnect();
  });
  return locks;
}

/** Releases all in one turn of the event loop. */
async function releaseAll(leases: readonly Lease[]): Promise<void> {
  const released = await Promise.allSettled(leases.map((lease) => lease.release()));
  expect(released.filter(({ status }) => status === 'rejected')).toEqual([]);
}

it('10 000 names that are released in one turn are all released', { timeout: TIMEOUT_MS }, async () => {
  const locks = openLocks();
  const names = Array.from({ length: 10_000 }, (_, index) => `name ${index}`);
  await releaseAll(await Promise.all(names.map((name) => locks.lock(name).acquire())));
  for await (const { resource } of locks.list()) expect.fail(`${resource} is held`);
});

it('10 000 readers that are released in one turn are all released, and the writer behind them enters', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { read, write } = openLocks().readWriteLock('a');
  const leases = await Promise.all(Array.from({ length: 10_000 }, () => read.acquire()));
  const writer = write.acquire();
  await releaseAll(leases);
  await (await writer).release();
});
