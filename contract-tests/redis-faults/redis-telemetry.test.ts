import { meterLocks } from '@locks/opentelemetry';
import { waitUntil } from '@locks/test-servers';
import {
  AggregationTemporality,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { describe, expect, it } from 'vitest';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import Lab from './lab.ts';

/** All locks of the process, measured while a test runs. */
class Measured implements AsyncDisposable {
  readonly #exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#exporter,
    exportIntervalMillis: 600_000,
  });
  readonly #provider = new MeterProvider({ readers: [this.#reader] });
  readonly #stop = meterLocks({ meterProvider: this.#provider });

  /** The sum of a counter, or the number of measurements of a histogram, over the series with these attributes. */
  async count(name: string, attributes: Readonly<Record<string, string>> = {}): Promise<number> {
    this.#exporter.reset();
    await this.#reader.forceFlush();
    const metrics = this.#exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const points = metrics
      .flatMap((scope) => scope.metrics)
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints as { attributes: object; value: number | Histogram }[])
      .filter((point) => {
        const own = point.attributes as Record<string, unknown>;
        return Object.entries(attributes).every(([key, value]) => own[key] === value);
      });
    return points.reduce((sum, { value }) => sum + (typeof value === 'number' ? value : value.count), 0);
  }

  async until(name: string, attributes: Readonly<Record<string, string>> = {}): Promise<void> {
    await waitUntil(async () => (await this.count(name, attributes)) > 0 || undefined, {
      what: `${name} ${JSON.stringify(attributes)}`,
      timeoutMs: 20_000,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.#provider.shutdown();
  }
}

describe.each(libraries)('what metrics show of a Redis server, with %s', { timeout: 60_000 }, (library) => {
  it('that works: acquires, holds, renewals, and the gap of a hand-off in this process', async () => {
    await using lab = new Lab(library);
    const locks = await lab.locks(await lab.server(), { ttlMs: 1_500 });
    await using measured = new Measured();
    const lease = await locks.lock('a').acquire();
    const next = locks.lock('a').acquire();
    await untilWaiting(locks, 'a', 1);
    await measured.until('lock.waiting');
    await measured.until('lock.renewals', { 'lock.outcome': 'renewed' });
    await lease.release();
    await (await next).release();
    expect(await measured.count('lock.acquire.duration', { 'lock.outcome': 'acquired' })).toBe(2);
    expect(await measured.count('lock.hold.duration')).toBe(2);
    expect(await measured.count('lock.handoff.gap')).toBe(1);
    expect(await measured.count('lock.held')).toBe(0);
    expect(await measured.count('lock.waiting')).toBe(0);
    expect(await measured.count('lock.lost')).toBe(0);
  });

  it('that stands still: failed renewals, then a lost lease, refused acquires and releases', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const locks = await lab.locks(redis, { ttlMs: 3_000 });
    await locks.lock('warm').run(() => {});
    await using measured = new Measured();
    const lease = await locks.lock('a').acquire();
    const other = await locks.lock('b').acquire();
    await redis.pause();
    expect(await failure(other.release())).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(await measured.count('lock.release.failures', { 'error.type': 'LOCK_BACKEND' })).toBe(1);
    expect(await measured.count('lock.held')).toBe(1);
    expect(await failure(locks.lock('c').acquire({ waitMs: 200 }))).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(await measured.count('lock.acquire.duration', { 'lock.outcome': 'error' })).toBe(1);
    await measured.until('lock.lost', { 'lock.reason': 'unconfirmed' });
    expect(await measured.count('lock.held')).toBe(0);
    expect(lease.validForMs).toBe(0);
    redis.resume();
  });

  it('whose lock was taken by force: the loss has its reason, and a late fenced write is counted', async () => {
    await using lab = new Lab(library);
    const locks = await lab.locks(await lab.server(), { ttlMs: 30_000 });
    await using measured = new Measured();
    const former = await locks.lock('a').acquire();
    await locks.forceRelease('a');
    const present = await locks.lock('a').acquire();
    await lab.write('report', 'new', present.fencingToken);
    expect(await failure(lab.write('report', 'old', former.fencingToken))).toMatchObject({
      code: 'LOCK_LOST',
    });
    expect(await measured.count('lock.fence.rejected', { 'lock.backend': library })).toBe(1);
    expect(await failure(former.release())).toMatchObject({ code: 'LOCK_LOST' });
    expect(await measured.count('lock.lost', { 'lock.reason': 'force-released' })).toBe(1);
    await present.release();
  });
});
