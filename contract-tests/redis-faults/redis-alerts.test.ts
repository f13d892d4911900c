import {
  canFindServer,
  freePort,
  type PrometheusServer,
  startPrometheus,
  startRedis,
  waitUntil,
} from '@locks/test-servers';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { startWithSetup } from '../src/fixtures/start-with-setup.ts';
import type { MeteredCommands, MeteredSetup } from '../src/telemetry/commands.ts';

const RULES = fileURLToPath(new URL('../../packages/opentelemetry/generated/alerts.yml', import.meta.url));
const DASHBOARD = new URL('../../packages/opentelemetry/generated/dashboard.json', import.meta.url);
const APPLICATION = new URL('../src/telemetry/main.ts', import.meta.url);

/** The names of the alerts that fire. */
async function firing(prometheus: PrometheusServer): Promise<string[]> {
  const alerts = await prometheus.alerts();
  return alerts.filter(({ state }) => state === 'firing').map(({ name }) => name);
}

/** The queries of the dashboard, as Grafana sends them for scrapes every second, by the title of the panel. */
function dashboardQueries(): [title: string, query: string][] {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  return panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }): [string, string] => [title, expr.replaceAll('$__rate_interval', '1m')]),
  );
}

// Prometheus is installed where that is possible; elsewhere `promtool` and this test are left out.
describe.skipIf(!canFindServer('prometheus'))('an application that Prometheus scrapes', () => {
  it('alerts when its Redis server stands still, and not before', { timeout: 120_000 }, async () => {
    await using redis = await startRedis();
    const metricsPort = await freePort();
    const setup: MeteredSetup = { url: redis.url, metricsPort, ttlMs: 3_000 };
    await using application = await startWithSetup<MeteredCommands>(APPLICATION, setup);
    const targets = [`127.0.0.1:${metricsPort}`];
    await using prometheus = await startPrometheus({ targets, ruleFile: RULES, everySeconds: 1 });
    await application.call.work('order:1', 20);
    await application.call.hold('order:7');
    const until = async (query: string, least: number): Promise<void> => {
      await waitUntil(async () => ((await prometheus.value(query)) ?? 0) >= least || undefined, {
        what: `${query} of ${least}`,
        timeoutMs: 40_000,
      });
    };
    await until('sum(lock_held{lock_group="order"})', 1);
    await until('sum(lock_acquire_duration_count{lock_outcome="acquired"})', 21);
    await until('sum(lock_renewals_total{lock_outcome="renewed"})', 2);
    expect(await firing(prometheus)).toEqual([]);
    await redis.pause();
    const lost = await waitUntil(
      async () => {
        const alerts = await prometheus.alerts();
        return alerts.find(({ name, state }) => name === 'LockLost' && state === 'firing');
      },
      { what: 'the alert LockLost', timeoutMs: 60_000 },
    );
    expect(lost.labels).toMatchObject({
      severity: 'critical',
      lock_backend: 'redis-ioredis',
      lock_group: 'order',
      lock_reason: 'unconfirmed',
    });
    await until('1 - sum(lock_held)', 1);
    redis.resume();
  });

  it('fills every query of the dashboard', { timeout: 180_000 }, async () => {
    await using redis = await startRedis();
    const metricsPort = await freePort();
    const setup: MeteredSetup = { url: redis.url, metricsPort, ttlMs: 1_500 };
    await using application = await startWithSetup<MeteredCommands>(APPLICATION, setup);
    await application.call.hold('order:1');
    await application.call.hold('order:2');
    const targets = [`127.0.0.1:${metricsPort}`];
    await using prometheus = await startPrometheus({ targets, ruleFile: RULES, everySeconds: 1 });
    const { call } = application;
    const queries = dashboardQueries();
    expect(queries.length).toBeGreaterThan(20);
    let empty = queries;
    // A rate needs a series that grows from one scrape to a later one: everything happens in each round, seconds apart.
    for (let round = 0; round < 4; round += 1) {
      await call.work('order:3', 5);
      await call.transfer('order:4', 5);
      await call.releaseLate('order:5');
      await call.writeLate('order:6');
      await call.block('order:7');
      await redis.pause();
      await call.giveUp(`stuck:${round}`, 'order:1');
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      redis.resume();
      // Both have ended meanwhile.
      await call.hold('order:1');
      await call.hold('order:2');
    }
    await waitUntil(
      async () => {
        const results = await Promise.all(
          empty.map(async ([, query]) => (await prometheus.seriesOf(query)).some(Number.isFinite)),
        );
        empty = empty.filter((_, index) => !results[index]);
        return empty.length === 0;
      },
      { what: 'a series for each query of the dashboard', timeoutMs: 30_000 },
    ).catch(() => undefined);
    expect(empty).toEqual([]);
  });
});
