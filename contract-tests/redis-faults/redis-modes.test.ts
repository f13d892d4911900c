import { machineNow } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import { figure, lossOf, untilWaiting, watched } from '../src/fault-lab/observe.ts';
import Lab, { untilListening } from './lab.ts';

const CHECK_MS = 1_000;
/** What a busy machine may add. */
const SLACK_MS = 1_500;

describe.concurrent.each(libraries)('readers and permits, with %s', { timeout: 30_000 }, (library) => {
  it("a killed reader's share ends by itself; the other readers go on, and the writer gets in after the last", async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const killed = await lab.worker(redis, { ttlMs: 1_500 });
    const [reader, writer] = [await lab.locks(redis, { ttlMs: 20_000 }), await lab.locks(redis)];
    const lease = await reader.readWriteLock('a').read.acquire();
    await killed.call.acquire('a', {}, 'shared');
    const entered = watched(writer.lock('a').acquire());
    await untilWaiting(writer, 'a');
    await killed.kill();
    await waitUntil(async () => (await reader.inspect('a')).holders.length === 1, {
      what: 'the end of its share',
    });
    expect(entered.settled).toBe(false);
    lease.assertValid();
    await lease.release();
    const releasedAt = machineNow();
    await (await entered.work).release();
    expect(machineNow() - releasedAt).toBeLessThan(CHECK_MS);
    expect(await redis.command('EXISTS', 'lock::a', '{lock::a}:h', '{lock::a}:q')).toBe(0);
  });

  it("a killed reader's share ends as early as it would alone: a longer one beside it does not keep it", async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const killed = await lab.worker(redis, { ttlMs: 1_200 });
    const writer = await lab.locks(redis);
    const brief = await (await lab.locks(redis, { ttlMs: 20_000 })).readWriteLock('a').read.acquire();
    await killed.call.acquire('a', {}, 'shared');
    const entered = writer.lock('a').acquire();
    await untilWaiting(writer, 'a');
    await brief.release();
    await killed.kill();
    const endsAt = machineNow() + Number(await redis.command('PTTL', 'lock::a'));
    await (await entered).release();
    figure(`${library}, writer after the share of a killed reader`, machineNow() - endsAt);
    expect(machineNow() - endsAt).toBeLessThan(CHECK_MS + SLACK_MS);
  });

  it('a killed permit holder gives its weight back once, never more', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const killed = await lab.worker(redis, { ttlMs: 1_200 });
    const locks = await lab.locks(redis, { ttlMs: 20_000 });
    await killed.call.acquire('a', {}, { permits: 3, weight: 2 });
    const kept = await locks.semaphore('a', 3).acquire();
    const waiting = [1, 1, 1].map((weight) => watched(locks.semaphore('a', 3).acquire({ weight })));
    await untilWaiting(locks, 'a', 3);
    await killed.kill();
    const endsAt = machineNow() + 1_200;
    await waitUntil(() => waiting.filter(({ settled }) => settled).length === 2, {
      what: 'two more permits',
    });
    figure(`${library}, permits after a killed holder's`, machineNow() - endsAt);
    await untilWaiting(locks, 'a', 1);
    expect(await redis.command('GET', 'lock::a')).toMatch(/^\*3\|3\|/);
    await kept.release();
    for (const lease of await Promise.all(waiting.map(({ work }) => work))) await lease.release();
    expect(await redis.command('EXISTS', 'lock::a', '{lock::a}:h', '{lock::a}:q')).toBe(0);
  });

  it('a reader frozen past its ttl learns that it was lost; its late release takes nothing from the writer', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const frozen = await lab.worker(redis, { ttlMs: 1_000 });
    const writer = await lab.locks(redis);
    const { id } = await frozen.call.acquire('a', {}, 'shared');
    const entered = writer.lock('a').acquire();
    await untilWaiting(writer, 'a');
    frozen.freeze();
    const lease = await entered;
    frozen.thaw();
    await waitUntil(async () => (await frozen.call.state(id)).aborted, { what: 'the loss' });
    await expect(frozen.call.release(id)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    lease.assertValid();
    expect(await redis.command('GET', 'lock::a')).toContain(lease.acquisitionId);
    await lease.release();
  });

  it('a writer that was killed while it waited holds readers back for one check at most', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const killed = await lab.worker(redis);
    const [first, second] = [await lab.locks(redis), await lab.locks(redis)];
    const reading = await first.readWriteLock('a').read.acquire();
    killed.call.acquire('a').catch(() => undefined);
    await untilListening(redis, 'a');
    const entered = second.readWriteLock('a').read.acquire();
    await untilListening(redis, 'a', 2);
    await killed.kill();
    const killedAt = machineNow();
    await (await entered).release();
    figure(`${library}, readers behind a killed writer`, machineNow() - killedAt);
    expect(machineNow() - killedAt).toBeLessThan(CHECK_MS + SLACK_MS);
    reading.assertValid();
    await reading.release();
  });

  it('after FLUSHALL the loss of readers and permits is reported, and those who wait get in, in order', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const holder = await lab.locks(redis, { ttlMs: 3_000 });
    const others = await lab.locks(redis);
    const leases = [
      await holder.readWriteLock('a').read.acquire(),
      await holder.readWriteLock('a').read.acquire(),
      await holder.semaphore('s', 2).acquire({ weight: 2 }),
    ];
    const losses = leases.map(lossOf);
    const order: string[] = [];
    const waiting = [
      others.lock('a').acquire(),
      others.readWriteLock('a').read.acquire(),
      others.semaphore('s', 2).acquire(),
    ].map((work, at) => work.then((lease) => (order.push(['w', 'r', 's'][at] as string), lease)));
    await untilWaiting(others, 'a', 2);
    await untilWaiting(others, 's', 1);
    await redis.command('FLUSHALL');
    const writer = await waiting[0];
    for (const { reason } of await Promise.all(losses)) expect(reason).toMatch(/force-released|taken-over/);
    expect(order.filter((who) => who !== 's')).toEqual(['w']);
    await writer?.release();
    const entered = await Promise.all(waiting);
    expect(await redis.command('GET', 'lock::s')).toMatch(/^\*2\|1\|/);
    for (const lease of entered) await lease.release();
    expect(await redis.command('EXISTS', 'lock::a', '{lock::a}:h', 'lock::s', '{lock::s}:h')).toBe(0);
  });

  it('a foreign SET NX PX is excluded while a reader lives, and excludes readers and permits until it goes', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const locks = await lab.locks(redis);
    const lease = await locks.readWriteLock('a').read.acquire();
    expect(await redis.command('SET', 'lock::a', 'theirs', 'NX', 'PX', 20_000)).toBe(null);
    await lease.release();
    expect(await redis.command('SET', 'lock::a', 'theirs', 'NX', 'PX', 20_000)).toBe('OK');
    expect(await locks.readWriteLock('a').read.tryAcquire()).toBeUndefined();
    const entered = [locks.readWriteLock('a').read.acquire(), locks.readWriteLock('a').read.acquire()];
    await untilWaiting(locks, 'a', 2);
    await redis.command('DEL', 'lock::a');
    for (const each of await Promise.all(entered)) await each.release();
  });
});

describe.concurrent.each(libraries)('a fenced value, with %s', { timeout: 30_000 }, (library) => {
  it('is not overwritten by a holder that was stopped past its ttl; a plain one is', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const stopped = await lab.worker(redis, { ttlMs: 800 });
    const next = await lab.worker(redis);
    const early = await stopped.call.acquire('a');
    await stopped.call.write(early.id, 'value', 'early', 'fenced');
    stopped.freeze();
    const late = await next.call.acquire('a');
    for (const how of ['fenced', 'plain'] as const) await next.call.write(late.id, how, 'newer', how);
    stopped.thaw();
    await expect(stopped.call.write(early.id, 'fenced', 'late', 'fenced')).rejects.toMatchObject({
      code: 'LOCK_LOST',
    });
    await stopped.call.write(early.id, 'plain', 'late', 'plain');
    expect(await redis.command('GET', 'fenced')).toBe('newer');
    expect(await redis.command('GET', 'plain')).toBe('late');
    await next.call.write(late.id, 'fenced', 'again', 'fenced');
    expect(await redis.command('GET', 'fenced')).toBe('again');
  });
});
