import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { failure, figure, Lab, lossOf, SESSION_MS, timeOf, untilWaiting, watched } from './lab.ts';

const LONG_SESSION_MS = 15_000;

test.concurrent('a server killed and restarted within the session costs neither a hold nor a waiter', async () => {
  await using lab = new Lab();
  const server = await lab.server();
  const options = { sessionTimeoutMs: LONG_SESSION_MS };
  const [holder, others] = [lab.locks(server, options), lab.locks(server, options)];
  const lease = await holder.lock('stock').acquire();
  const waiting = watched(others.lock('stock').acquire({ waitMs: 30_000 }));
  await untilWaiting(holder, 'stock');
  await server.restart();
  lease.assertValid();
  expect(await others.lock('stock').tryAcquire()).toBeUndefined();
  // A release is not waited for longer than a second: both are connected again.
  expect((await holder.inspect('stock')).holders).toHaveLength(1);
  expect(waiting.settled).toBe(false);
  await lease.release();
  const next = await waiting.work;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  await next.release();
});

test.concurrent('tokens rise over the restart of a killed server, also of a resource that was tidied away', async () => {
  await using lab = new Lab();
  const server = await lab.server();
  const first = await lab.locks(server, { tidyMs: 100 }).lock('stock').acquire();
  await first.release();
  await server.restart();
  const second = await lab.locks(server).lock('stock').acquire();
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  await second.release();
});

test.concurrent('a server that stands still for longer than the session: the lease is lost in time, and waiters recover', async () => {
  await using lab = new Lab();
  const server = await lab.server();
  const [holder, others] = [lab.locks(server), lab.locks(server)];
  const lease = await holder.lock('stock').acquire();
  const waiting = timeOf(others.lock('stock').acquire({ waitMs: 30_000 }));
  await untilWaiting(holder, 'stock');
  const lost = lossOf(lease);
  const pausedAt = performance.now();
  await server.pause();
  const { reason, at } = await lost;
  expect(reason).toBe('session-lost');
  expect(at - pausedAt).toBeLessThan(SESSION_MS);
  await sleep(SESSION_MS);
  const resumedAt = performance.now();
  server.resume();
  const next = await waiting;
  expect(next.at).toBeGreaterThan(at);
  figure('server stopped for two sessions: the next one holds after it goes on', next.at - resumedAt);
  await next.value.release();
  const again = await holder.lock('stock').acquire({ waitMs: 20_000 });
  await again.release();
});

test.concurrent('while the server is down, acquires fail with LOCK_BACKEND within waitMs, and work again afterwards', async () => {
  await using lab = new Lab();
  const server = await lab.server();
  const locks = lab.locks(server);
  const lease = await locks.lock('stock').acquire();
  const waiting = lab.locks(server).lock('stock').acquire({ waitMs: 1_500 });
  const waitingFails = failure(waiting);
  await untilWaiting(locks, 'stock');
  const lost = lossOf(lease);
  await server.kill();
  const startedAt = performance.now();
  const fails = await failure(locks.lock('other').acquire({ waitMs: 700 }));
  expect(fails.code).toBe('LOCK_BACKEND');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(['LOCK_BACKEND', 'LOCK_TIMEOUT']).toContain((await waitingFails).code);
  expect((await lost).reason).toBe('session-lost');
  await server.restart();
  const again = await locks.lock('stock').acquire({ waitMs: 20_000 });
  await again.release();
});
