import { setTimeout as sleep } from 'node:timers/promises';
import { memoryBackend } from '@locks/memory';
import { startProxy, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import RedlockByDefault, { ExecutionError, Lock, Redlock, ResourceLockedError } from '@locks/redlock-compat';
import { Deployment, failureOf } from './deployments.ts';

/** For all that must not wait: no second try. */
const ONCE = { retryCount: 0 };
const HOUR = 3_600_000;

describe.each([1, 3])('Redlock on %i Redis', (count) => {
  let deployment: Deployment;
  let redlock: Redlock;
  let other: Redlock;
  beforeAll(async () => {
    deployment = await Deployment.start(count);
    redlock = new Redlock(deployment.clients);
    other = new Redlock(deployment.clients, { retryCount: 5, retryDelay: 50, retryJitter: 10 });
    // Every server knows the scripts: what is sent to all first comes first at all.
    for (const client of deployment.clients)
      await (await new Redlock([client]).acquire(['warm'], HOUR)).release();
  });
  afterAll(() => deployment?.[Symbol.asyncDispose]());

  const isFree = async (...resources: string[]): Promise<boolean> => {
    for (const resource of resources) {
      const lock = await other.acquire([resource], 1_000, ONCE).catch(() => undefined);
      if (lock === undefined) return false;
      await lock.release();
    }
    return true;
  };

  it('acquires, extends and releases a lock on one resource', async () => {
    let lock = await redlock.acquire(['a'], HOUR);
    expect(lock).toBeInstanceOf(Lock);
    expect(lock.resources).toEqual(['a']);
    expect(lock.value).toMatch(/./);
    // 1 % of drift, and what the call took.
    expect(lock.expiration).toBeGreaterThan(Date.now() + 0.9 * HOUR);
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + HOUR);
    lock = await lock.extend(3 * HOUR);
    expect(lock.expiration).toBeGreaterThan(Date.now() + 2.7 * HOUR);
    expect(await isFree('a')).toBe(false);
    await lock.release();
    expect(lock.expiration).toBe(0);
    expect(await isFree('a')).toBe(true);
  });

  it('acquires, extends and releases a lock on several resources', async () => {
    let lock = await redlock.acquire(['b1', 'b2', 'b1'], HOUR);
    lock = await redlock.extend(lock, 3 * HOUR);
    expect(lock.lease.leases).toHaveLength(2);
    for (const { validForMs } of lock.lease.leases) expect(validForMs).toBeGreaterThan(2.7 * HOUR);
    expect([await isFree('b1'), await isFree('b2')]).toEqual([false, false]);
    await redlock.release(lock);
    expect(await isFree('b1', 'b2')).toBe(true);
  });

  it('a lock ends by itself', async () => {
    const lock = await redlock.acquire(['c'], 200);
    const next = await other.acquire(['c'], HOUR, { retryCount: 100 });
    expect(lock.expiration).toBe(0);
    await next.release();
  });

  it('locks on one resource exclude each other: the votes say that it is locked', async () => {
    const lock = await redlock.acquire(['d'], HOUR);
    const error = (await failureOf(other.acquire(['d'], HOUR))) as ExecutionError;
    expect(error).toBeInstanceOf(ExecutionError);
    const stats = await Promise.all(error.attempts);
    expect(stats.length).toBeGreaterThan(0);
    for (const { membershipSize, quorumSize, votesFor, votesAgainst } of stats) {
      expect([membershipSize, quorumSize]).toEqual([count, Math.floor(count / 2) + 1]);
      expect(votesFor.size).toBe(0);
      expect(votesAgainst.size).toBeGreaterThanOrEqual(quorumSize);
      for (const refusal of votesAgainst.values()) expect(refusal).toBeInstanceOf(ResourceLockedError);
    }
    await lock.release();
  });

  it('locks that share a resource exclude each other, and leave the rest free', async () => {
    const lock = await redlock.acquire(['e1', 'e2'], HOUR);
    const error = (await failureOf(other.acquire(['e2', 'e3'], HOUR))) as ExecutionError;
    expect(error).toBeInstanceOf(ExecutionError);
    // Several resources are tried as often as the settings say.
    expect(error.attempts).toHaveLength(6);
    for (const { votesAgainst } of await Promise.all(error.attempts))
      for (const refusal of votesAgainst.values()) expect(refusal).toBeInstanceOf(ResourceLockedError);
    expect([await isFree('e1'), await isFree('e2'), await isFree('e3')]).toEqual([false, false, true]);
    await lock.release();
    expect(await isFree('e1', 'e2', 'e3')).toBe(true);
  });

  it('using() extends its lock while the routine runs, releases it, and gives the value', async () => {
    const seen = await redlock.using(['f'], 600, { automaticExtensionThreshold: 100 }, async (signal) => {
      await sleep(1_500);
      expect([signal.aborted, signal.error]).toEqual([false, undefined]);
      return isFree('f');
    });
    expect(seen).toBe(false);
    expect(await isFree('f')).toBe(true);
  });

  it('using() runs one routine after the other', async () => {
    let inside = 0;
    const routine = async (): Promise<number> => {
      inside += 1;
      const most = inside;
      await sleep(100);
      inside -= 1;
      return most;
    };
    const most = await Promise.all(
      [redlock, other, redlock].map((one) => one.using(['g'], 5_000, { retryCount: 200 }, routine)),
    );
    expect(most).toEqual([1, 1, 1]);
    expect(await isFree('g')).toBe(true);
  });

  it('a resource that is waited for is got when it is released, with at least half of the duration left', async () => {
    const lock = await redlock.acquire(['h'], HOUR);
    const waiting = other.acquire(['h'], 20_000, { retryCount: -1 });
    await sleep(100);
    await lock.release();
    const next = await waiting;
    expect(next.expiration).toBeGreaterThan(Date.now() + 10_000);
    await next.release();
  });
});

describe('a client that answers slowly', () => {
  it('keeps its vote when the end of the call cuts its last attempt, and no error is emitted', async () => {
    await using deployment = await Deployment.start(3);
    const proxies = await Promise.all(deployment.servers.map((server) => startProxy(server)));
    const clients = proxies.map(({ port }) => new Redis(port, '127.0.0.1'));
    try {
      const errors: Error[] = [];
      const slow = new Redlock(clients, { retryCount: 6, retryDelay: 100 });
      slow.on('error', (error: Error) => errors.push(error));
      const resources = ['a', 'b', 'c', 'd'];
      await Promise.all(resources.map((resource) => slow.acquire([resource], HOUR)));
      // All scripts are known from here on.
      await failureOf(slow.acquire(['a'], HOUR, { retryCount: 1 }));
      for (const proxy of proxies) proxy.latency(100);
      // Each waits for 600 ms, in which an attempt takes nearly all of the time: the end meets one that is under way.
      const refused = resources.map((resource) => failureOf(slow.acquire([resource], HOUR)));
      for (const error of await Promise.all(refused)) {
        const [votes] = await Promise.all((error as ExecutionError).attempts);
        expect(votes?.votesAgainst.size).toBeGreaterThanOrEqual(2);
        for (const vote of votes?.votesAgainst.values() ?? [])
          expect(vote).toBeInstanceOf(ResourceLockedError);
      }
      expect(errors).toEqual([]);
    } finally {
      for (const client of clients) client.disconnect();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    }
  });
});

describe('Redlock', () => {
  it('is also the default export', () => expect(RedlockByDefault).toBe(Redlock));

  it('locks on any backend with a ttl', async () => {
    const redlock = new Redlock([memoryBackend()]);
    const lock = await redlock.acquire(['a'], 1_000);
    await expect(redlock.acquire(['a'], 1_000, ONCE)).rejects.toBeInstanceOf(ExecutionError);
    await redlock.release(lock);
    await redlock.quit();
  });

  it('quit() closes the clients, and what is held is free', async () => {
    await using deployment = await Deployment.start(1);
    const [client] = deployment.clients;
    const redlock = new Redlock(deployment.clients);
    await redlock.acquire(['a'], HOUR);
    await redlock.quit();
    await waitUntil(() => client?.status === 'end', { what: 'the client to end' });
    await expect(redlock.acquire(['a'], HOUR)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    const next = new Redlock([new Redis(deployment.servers[0]?.url ?? '')]);
    await (await next.acquire(['a'], HOUR, ONCE)).release();
    await next.quit();
  });

  it('refuses bad input at once with LOCK_INVALID_ARGUMENT', async () => {
    const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    const backend = memoryBackend();
    const two = [backend, memoryBackend()];
    expect(() => new Redlock([backend, backend, backend])).toThrow('one client twice');
    for (const clients of [undefined, [], 5, ['redis://127.0.0.1'], [null], [{}], two])
      expect(() => new Redlock(clients as never)).toThrow(invalid);
    for (const settings of [
      null,
      { retryCount: -2 },
      { retryCount: 0.5 },
      { retryDelay: '5' },
      { retryJitter: -1 },
      { driftFactor: 1 },
      { automaticExtensionThreshold: null },
      { retries: 3 },
    ])
      expect(() => new Redlock([backend], settings as never)).toThrow(invalid);
    expect(() => new Redlock([backend], {}, { acquireScript: 'return 1' } as never)).toThrow(
      expect.objectContaining({ code: 'LOCK_UNSUPPORTED' }),
    );

    const redlock = new Redlock([backend]);
    for (const resources of ['a', [], [5], ['']])
      await expect(redlock.acquire(resources as never, 1_000)).rejects.toThrow(invalid);
    for (const duration of [0, 0.5, -1, '5', undefined, Number.MAX_SAFE_INTEGER])
      await expect(redlock.acquire(['a'], duration as never)).rejects.toThrow(invalid);
    for (const settings of [{ driftFactor: 0.1 }, { retry: 1 }, { signal: {} }])
      await expect(redlock.acquire(['a'], 1_000, settings as never)).rejects.toThrow(invalid);
    await expect(redlock.using(['a'], 1_000, {}, undefined as never)).rejects.toThrow(invalid);
    await expect(redlock.release({} as never)).rejects.toThrow(invalid);
    const lock = await redlock.acquire(['a'], 1_000);
    await expect(lock.extend(0)).rejects.toThrow(invalid);
    await expect(new Redlock([backend]).release(lock)).rejects.toThrow(invalid);
    await lock.release();
  });
});
