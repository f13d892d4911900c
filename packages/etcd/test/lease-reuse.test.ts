import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Etcd3, ILeaseKeepAliveResponse } from 'etcd3';
import { call, freshName, interceptKeepAlives, request, take, useEtcd } from './fixture.ts';

/** A lease is used again without a keep-alive for 1 % of its ttl. */
describe('a lease that was renewed just now', () => {
  const etcd = useEtcd();

  function countKeepAlives(
    client: Etcd3,
    answered?: (answer: ILeaseKeepAliveResponse) => ILeaseKeepAliveResponse,
  ): () => number {
    let sends = 0;
    interceptKeepAlives(client, {
      write(send) {
        sends += 1;
        send();
      },
      ...(answered && { answered }),
    });
    return () => sends;
  }

  test('serves the next locks without a keep-alive, each counted from before its own grant', async () => {
    const client = etcd.client();
    const keepAlives = countKeepAlives(client);
    const backend = etcd.open(client);
    // One per cent of it are six seconds, within which a busy machine takes the five locks too.
    const ttlMs = 600_000;
    const first = await take(backend, request(freshName(), undefined, ttlMs));
    await backend.release(first, call);
    await sleep(100);
    for (let n = 0; n < 5; n += 1) {
      const grant = await take(backend, request(freshName(), undefined, ttlMs));
      expect(Math.abs(grant.countedFrom - first.countedFrom)).toBeLessThan(50);
      await backend.release(grant, call);
    }
    expect(keepAlives()).toBe(0);
  });

  test('is renewed for the next lock when 1 % of its ttl is over', async () => {
    const client = etcd.client();
    const keepAlives = countKeepAlives(client);
    const backend = etcd.open(client);
    await backend.release(await take(backend, request(freshName())), call);
    await sleep(220);
    const before = performance.now();
    const grant = await take(backend, request(freshName()));
    expect(keepAlives()).toBe(1);
    expect(grant.countedFrom).toBeGreaterThanOrEqual(before);
    await backend.release(grant, call);
  });

  test('is renewed for the next lock when the machine slept meanwhile', async () => {
    const client = etcd.client();
    const keepAlives = countKeepAlives(client);
    const backend = etcd.open(client);
    await backend.release(await take(backend, request(freshName())), call);
    const now = Date.now.bind(Date);
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 2_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await backend.release(await take(backend, request(freshName())), call);
    expect(keepAlives()).toBe(1);
  });

  test('is renewed for the next lock if an earlier leader gave the answer', async () => {
    const client = etcd.client();
    let stale = true;
    const keepAlives = countKeepAlives(client, (answer) => {
      const { header } = answer;
      return stale ? { ...answer, header: { ...header, raft_term: '0' } } : answer;
    });
    const backend = etcd.open(client);
    const first = await take(backend, request(freshName()));
    await sleep(220);
    expect(await backend.renew([{ grant: first, ttlMs: 20_000 }], call)).toMatchObject([
      { status: 'unknown' },
    ]);
    await backend.release(first, call);
    stale = false;
    const before = performance.now();
    const grant = await take(backend, request(freshName()));
    expect(keepAlives()).toBe(2);
    expect(grant.countedFrom).toBeGreaterThanOrEqual(before);
    await backend.release(grant, call);
  });
});
