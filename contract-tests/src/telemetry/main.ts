/** The main module of an application whose metrics Prometheus scrapes. */
import { createLocks } from '@locks/core';
import { serveCalls } from '@locks/core/conformance/process';
import { meterLocks } from '@locks/opentelemetry';
import { redisBackend } from '@locks/redis-ioredis';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { Redis } from 'ioredis';
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

const commands: MeteredCommands = {
  async hold(name) {
    await locks.lock(name).acquire();
  },
  async work(name, times) {
    for (let time = 0; time < times; time += 1) await locks.lock(name).run(() => {});
  },
};
serveCalls(commands);
