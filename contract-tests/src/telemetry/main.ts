/** The main module of an application whose metrics Prometheus scrapes. */
import { createLocks, isLockError, type Lease } from '@locks/core';
import { serveCalls } from '@locks/core/conformance/process';
import { meterLocks } from '@locks/opentelemetry';
import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MeteredCommands, MeteredSetup } from './commands.ts';

const { url, metricsPort, ttlMs } = JSON.parse(process.argv[2] as string) as MeteredSetup;
const exporter = new PrometheusExporter({ host: '127.0.0.1', port: metricsPort, preventServerStart: true });
await exporter.startServer();
meterLocks({
  meterProvider: new MeterProvider({ readers: [exporter] }),
  groupOf: (name) => name.split(':', 1)[0],
});
const redis = new Redis(url);
redis.on('error', () => {});
const locks = createLocks(redisBackend(redis), { ttlMs });

const held = new Map<string, Lease>();

const commands: MeteredCommands = {
  async hold(name) {
    held.set(name, await locks.lock(name).acquire());
  },
  async work(name, times) {
    for (let time = 0; time < times; time += 1) await locks.lock(name).run(() => {});
  },
  async transfer(name, times) {
    for (let time = 0; time < times; time += 1) {
      const lease = await locks.lock(name).acquire();
      const waiting = locks.lock(name).acquire();
      await waitUntil(async () => (await locks.inspect(name)).waiters.length > 0, { what: 'a waiter' });
      await lease.release();
      await (await waiting).release();
    }
  },
  async releaseLate(name) {
    const lease = await locks.lock(name).acquire({ renewal: 'manual', ttlMs });
    await sleep(0.85 * ttlMs);
    await lease.release();
  },
  async block(name) {
    const lease = await locks.lock(name).acquire();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.75 * ttlMs);
    await lease.renew();
    await lease.release();
  },
  async writeLate(name) {
    const first = await locks.lock(name).acquire();
    await first.release();
    const second = await locks.lock(name).acquire();
    await fencedSet(redis, name, 'new', second.fencingToken);
    await second.release();
    await fencedSet(redis, name, 'old', first.fencingToken).catch((error: unknown) => {
      if (!isLockError(error, 'LOCK_LOST')) throw error;
    });
  },
  async giveUp(name, heldName) {
    const lease = held.get(heldName);
    if (lease === undefined) throw new Error(`${heldName} is not held.`);
    const outcomes = await Promise.allSettled([locks.lock(name).acquire({ waitMs: 1_500 }), lease.release()]);
    return outcomes.map((outcome) =>
      outcome.status === 'rejected' && isLockError(outcome.reason) ? outcome.reason.code : outcome.status,
    );
  },
};
serveCalls(commands);
