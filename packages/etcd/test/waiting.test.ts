import { setTimeout as delay } from 'node:timers/promises';
import type { ITxnRequest } from 'etcd3';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  acquire,
  call,
  callFor,
  Counted,
  freshName,
  holdBack,
  interceptKeepAlives,
  request,
  sendTwice,
  take,
  useEtcd,
} from './fixture.ts';

/** Blocks the event loop. */
function stall(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('leases and sessions', () => {
  const etcd = useEtcd();

  test('sixty waiters of one process cost nothing while they wait, and leave nothing', async () => {
    const counted = new Counted(etcd.client());
    const [holder, backend] = [etcd.open(), etcd.open(counted.client)];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = Array.from({ length: 60 }, () => request(name));
    await Promise.all(waiting.map((each) => backend.attempt(each, true, call)));
    expect(counted.take()['leaseGrant']).toBeLessThanOrEqual(62);
    const turns = waiting.map((each) => backend.awaitTurn?.(each, callFor(20_000)));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    // The periodic check is one request for all of them, and the first one may still have read the key that it watches.
    expect((counted.take()['txn'] ?? 0) <= 2).toBe(true);
    await holder.release(first, call);
    await Promise.race(turns);
    // The lease is for the next of them.
    expect(counted.take()).toEqual({ txn: 1, leaseGrant: 1 });
    await Promise.all(waiting.map((each) => backend.abandon(each, call)));
    expect(await backend.inspect(name, call)).toEqual({ name, holders: [], waiters: [] });
  });

  test('a queue entry lasts as long as its process waits', async () => {
    const [holder, backend] = [etcd.open(), etcd.open(undefined, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    await backend.attempt(waiting, true, call);
    const turn = backend.awaitTurn(waiting, callFor(10_000));
    const { kvs } = await etcd.client().getAll().prefix(`locks//${name}/${waiting.acquisitionId}`).exec();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const after = await etcd.client().getAll().prefix(`locks//${name}/${waiting.acquisitionId}`).exec();
    expect(after.kvs[0]?.create_revision).toBe(kvs[0]?.create_revision as string);
    await holder.release(first, call);
    expect(await turn).toBeDefined();
  });

  test('a process that stalls while core pauses between two calls keeps its queue entry', async () => {
    // The heartbeat comes every third of it; the session outlives the stall.
    const [holder, backend] = [etcd.open(), etcd.open(undefined, { waiterTtlMs: 9_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    await backend.attempt(waiting, true, call);
    const key = `locks//${name}/${waiting.acquisitionId}`;
    const before = (await etcd.client().get(key).exec()).kvs[0]?.create_revision;
    expect(await backend.awaitTurn(waiting, callFor(2_700))).toBeUndefined();
    // The pause of core ends after the heartbeat is due, and both are late.
    const paused = delay(500);
    stall(3_000);
    await paused;
    const turn = backend.awaitTurn(waiting, callFor(20_000));
    await delay(500);
    expect((await etcd.client().get(key).exec()).kvs[0]?.create_revision).toBe(before);
    await holder.release(first, call);
    expect(await turn).toBeDefined();
  });

  test('an entry whose abandon got no answer does not block those behind it', async () => {
    const client = etcd.client();
    const [holder, backend, other] = [etcd.open(), etcd.open(client), etcd.open()];
    const name = freshName();
    const first = await take(holder, request(name));
    const [gone, behind] = [request(name), request(name)];
    await backend.attempt(gone, true, call);
    await other.attempt(behind, true, call);
    const { kv } = client;
    const send = kv.txn.bind(kv);
    kv.txn = async () => {
      throw Object.assign(new Error('14 UNAVAILABLE: cut'), { code: 14 });
    };
    await expect(backend.abandon(gone, call)).rejects.toThrow('cut');
    kv.txn = send;
    await holder.release(first, call);
    expect(await other.awaitTurn(behind, callFor(8_000))).toBeDefined();
  });

  test('an entry that core has forgotten is abandoned', async () => {
    const [holder, backend] = [etcd.open(), etcd.open(undefined, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    await backend.attempt(request(name), true, call);
    await vi.waitFor(async () => expect((await holder.inspect(name, call)).waiters).toEqual([]), 5_000);
    await holder.release(first, call);
  });

  test('a session does not end because an earlier leader does not know it', async () => {
    const client = etcd.client();
    let stale = false;
    interceptKeepAlives(client, {
      answered: (answer) => {
        const given = stale ? { ...answer, TTL: '0' } : answer;
        stale = false;
        return given;
      },
    });
    const [holder, backend] = [etcd.open(), etcd.open(client, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    await backend.attempt(waiting, true, call);
    const turn = backend.awaitTurn(waiting, callFor(20_000));
    const key = `locks//${name}/${waiting.acquisitionId}`;
    const before = (await etcd.client().get(key).exec()).kvs[0]?.create_revision;
    stale = true;
    await vi.waitFor(() => expect(stale).toBe(false), 5_000);
    // Without another keep-alive the session would have ended.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect((await etcd.client().get(key).exec()).kvs[0]?.create_revision).toBe(before);
    await holder.release(first, call);
    expect(await turn).toBeDefined();
  });

  test('queues at once even if the marker of its session was sent twice', async () => {
    const counted = new Counted(etcd.client());
    const [holder, backend] = [etcd.open(), etcd.open(counted.client)];
    const name = freshName();
    const first = await take(holder, request(name));
    const writesMarker = ({ success = [] }: ITxnRequest) =>
      success.some(({ request_put: put }) => put?.key?.toString().startsWith('locks///') === true);
    sendTwice(counted.client, writesMarker, async () => {
      await etcd.client().put('foreign').value('written meanwhile');
    });
    const waiting = request(name);
    expect((await backend.attempt(waiting, true, call)).status).toBe('contended');
    // The marker, an attempt that finds the lock in use, and the request that queues.
    expect(counted.take()['txn']).toBeLessThanOrEqual(4);
    await holder.release(first, call);
    expect((await backend.attempt(waiting, true, call)).status).toBe('granted');
  });

  test('a process whose session ended learns it soon, and queues again', async () => {
    const client = etcd.client();
    const counted = new Counted(etcd.client());
    const [holder, backend] = [etcd.open(), etcd.open(counted.client, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    await backend.attempt(waiting, true, call);
    counted.take();
    const turn = backend.awaitTurn(waiting, callFor(20_000));
    // The first periodic check; the next one would come after 5 s.
    await vi.waitFor(() => expect(counted.counts['txn']).toBeGreaterThanOrEqual(1), 5_000);
    const { kvs } = await client.getAll().prefix(`locks//${name}/${waiting.acquisitionId}`).exec();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    const startedAt = performance.now();
    expect(await turn).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect((await backend.attempt(waiting, true, call)).status).toBe('contended');
    await holder.release(first, call);
    const grant = await acquire(backend, waiting);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('a lease that is used again lasts for its whole ttl from then on', async () => {
    const backend = etcd.open();
    const client = etcd.client();
    const name = freshName();
    await backend.release(await take(backend, request(name, undefined, 4_000)), call);
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    const before = performance.now();
    const grant = await take(backend, request(name, undefined, 4_000));
    expect(grant.countedFrom).toBeGreaterThanOrEqual(before);
    const { kvs } = await client.getAll().prefix(`locks//${name}/`).exec();
    const { TTL } = await client.leaseClient.leaseTimeToLive({ ID: kvs[0]?.lease as string });
    expect(Number(TTL)).toBeGreaterThanOrEqual(3);
    await backend.release(grant, call);
  });

  test('a waiter that queues while its process lets the session lapse keeps its position', {
    timeout: 30_000,
  }, async () => {
    const client = etcd.client();
    let keepAlives = 0;
    interceptKeepAlives(client, {
      write(send) {
        keepAlives += 1;
        send();
      },
    });
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    const gone = request(name);
    expect((await backend.attempt(gone, true, call)).status).toBe('contended');
    await backend.abandon(gone, call);
    // The last use of the session is so long ago that it lapses at its next heartbeat.
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_000);
    onTestFinished(() => void vi.restoreAllMocks());
    const waiting = request(name);
    const slow = holdBack(client);
    const attempting = backend.attempt(waiting, true, call);
    await slow.sent;
    const before = keepAlives;
    await vi.waitFor(() => expect(keepAlives).toBeGreaterThan(before), 5_000);
    await slow.deliver();
    expect((await attempting).status).toBe('contended');
    const entered = backend.awaitTurn?.(waiting, callFor(20_000));
    // Longer than a session lasts without keep-alives.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const { waiters } = await holder.inspect(name, call);
    expect(waiters.map(({ acquisitionId }) => acquisitionId)).toEqual([waiting.acquisitionId]);
    await holder.release(first, call);
    const grant = await entered;
    if (grant !== undefined) await backend.release(grant, call);
  });

  test('a queue entry is attached to the session, and its hold to a lease of its own', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    expect((await backend.attempt(waiting, true, call)).status).toBe('contended');
    const entered = backend.awaitTurn?.(waiting, callFor(10_000));
    const leaseOf = async () =>
      (await client.get(`locks//${name}/${waiting.acquisitionId}`).exec()).kvs[0]?.lease;
    const session = await leaseOf();
    await holder.release(first, call);
    const grant = await entered;
    expect(grant?.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    expect(await leaseOf()).not.toBe(session);
    if (grant !== undefined) await backend.release(grant, call);
  });
});
