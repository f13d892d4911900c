import type { AcquireRequest, Grant, LockMode } from '@locks/core/backend';
import type { Etcd3, ITxnResponse } from 'etcd3';
import { describe, expect, test, vi } from 'vitest';
import {
  acquire,
  type Backend,
  call,
  callFor,
  Counted,
  freshName,
  holdBack,
  request,
  take,
  useEtcd,
} from './fixture.ts';

const MANY = 1_000;

describe('many waiters of one process on one lock', () => {
  const etcd = useEtcd();
  const queue = (backend: Backend, all: readonly AcquireRequest[]) =>
    Promise.all(all.map((each) => backend.attempt(each, true, call)));
  const requestsFor = (name: string, size: number, mode?: LockMode) =>
    Array.from({ length: size }, () => request(name, mode));
  const ids = (all: readonly { readonly acquisitionId: string }[]) =>
    all.map(({ acquisitionId }) => acquisitionId);
  const waitersOf = async (backend: Backend, name: string) =>
    ids((await backend.inspect(name, call)).waiters);

  test('a thousand are queued by a few transactions, in their order', async () => {
    const counted = new Counted(etcd.client());
    const [holder, backend] = [etcd.open(), etcd.open(counted.client)];
    const name = freshName();
    await take(holder, request(name));
    const waiting = requestsFor(name, MANY);
    await queue(backend, waiting);
    const { txn = 0, leaseGrant = 0 } = counted.take();
    expect(txn).toBeLessThan(40);
    expect(leaseGrant).toBeLessThan(5);
    // The first one tried to hold at once, with a lease of its own, since the lock was not known to be in use.
    const behindFirst = ids(waiting.slice(1));
    expect((await waitersOf(backend, name)).filter((id) => behindFirst.includes(id))).toEqual(behindFirst);
    const turns = waiting.map((each) => backend.awaitTurn(each, callFor(3_000)));
    await Promise.all(turns);
    const { txn: checks = 0, ...others } = counted.take();
    expect(checks).toBeLessThan(5);
    expect(others).toEqual({});
  });

  test('a check that reads the head of the queue leaves all in their order, and nobody waits for the next one', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = requestsFor(name, 400);
    await queue(backend, waiting);
    const served: string[] = [];
    const all = waiting.map(async (each) => {
      const grant = await acquire(backend, each, callFor(30_000));
      served.push(each.acquisitionId);
      await backend.release(grant, call);
    });
    const reads = vi.spyOn(client.kv, 'txn');
    const headRead = ({ mock }: typeof reads) =>
      mock.calls.some(([sent]) =>
        JSON.stringify(sent).includes('"sort_order":"Ascend","sort_target":"Create"'),
      );
    await vi.waitFor(() => expect(headRead(reads)).toBe(true), { timeout: 20_000 });
    // All have attempted again, and an answer with the whole queue serves many of them.
    expect(reads.mock.calls.filter(([{ compare }]) => compare?.length === 0).length).toBeLessThan(40);
    const order = await waitersOf(holder, name);
    await holder.release(first, call);
    const startedAt = performance.now();
    await Promise.all(all);
    expect(served).toEqual(order);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  test('a process that lost its session queues again with a few requests, and is served', async () => {
    const client = etcd.client();
    const counted = new Counted(client);
    const [holder, backend] = [etcd.open(), etcd.open(client, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = requestsFor(name, 300);
    const served: string[] = [];
    const all = waiting.map(async (each) => {
      const grant = await acquire(backend, each, callFor(30_000));
      served.push(each.acquisitionId);
      expect(await backend.release(grant, call)).toBe('released');
    });
    await vi.waitFor(async () => expect(await waitersOf(holder, name)).toHaveLength(300), 5_000);
    const [before] = await waitersOf(holder, name);
    const { kvs } = await client.getAll().prefix(`locks//${name}/${before}`).exec();
    counted.take();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    await vi.waitFor(async () => {
      const [now] = (await client.getAll().prefix(`locks//${name}/`).exec()).kvs.slice(-1);
      expect(await waitersOf(holder, name)).toHaveLength(300);
      expect(now?.lease).not.toBe(kvs[0]?.lease);
    }, 5_000);
    const { txn = 0, leaseGrant = 0 } = counted.take();
    expect(txn).toBeLessThan(60);
    expect(leaseGrant).toBeLessThan(8);
    const order = await waitersOf(holder, name);
    await holder.release(first, call);
    await Promise.all(all);
    expect(served).toEqual(order);
  });

  test('waiters that were queued in one transaction do not overtake each other', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    await backend.attempt(request(name), true, call);
    const [ahead] = (await holder.inspect(name, call)).waiters;
    const waiting = requestsFor(name, 4);
    // The request of the first is under way; the others are queued together after it.
    const [alone, ...together] = waiting as [AcquireRequest, ...AcquireRequest[]];
    const late = holdBack(client);
    const queued = queue(backend, [alone, ...together]);
    await late.sent;
    await late.deliver();
    await queued;
    const { kvs } = await client.getAll().prefix(`locks//${name}/`).exec();
    const revisions = together.map(
      ({ acquisitionId }) =>
        kvs.find(({ key }) => key.toString().endsWith(`/${acquisitionId}`))?.create_revision,
    );
    expect(new Set(revisions).size).toBe(1);
    await backend.abandon({ ...alone, acquisitionId: ahead?.acquisitionId as string }, call);
    await backend.abandon(alone, call);
    await holder.release(first, call);
    const [one, two, three] = together as [AcquireRequest, AcquireRequest, AcquireRequest];
    expect((await backend.attempt(three, true, call)).status).toBe('contended');
    expect((await backend.attempt(two, true, call)).status).toBe('contended');
    expect((await backend.attempt(one, true, call)).status).toBe('granted');
    await backend.abandon(two, call);
    await backend.abandon(one, call);
    expect((await backend.attempt(three, true, call)).status).toBe('granted');
  });

  test('a hand-off reads its own entry, whatever the length of the queue', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const name = freshName();
    const first = await take(backend, request(name));
    const waiting = requestsFor(name, 200);
    await queue(backend, waiting);
    const order = await waitersOf(backend, name);
    const readEntries = countEntries(client);
    const served: string[] = [];
    const all = waiting.map(async (each) => {
      const grant = (await backend.awaitTurn(each, callFor(60_000))) ?? (await acquire(backend, each));
      served.push(each.acquisitionId);
      expect(await backend.release(grant, call)).toBe('released');
    });
    await backend.release(first, call);
    await Promise.all(all);
    expect(served).toEqual(order);
    // The periodic check reads the head of the queue.
    expect(readEntries()).toBeLessThan(5 * waiting.length);
  });

  test('a hand-off between processes reads as little', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    let held = await take(holder, request(name));
    const [next, ...others] = requestsFor(name, 40) as [AcquireRequest, ...AcquireRequest[]];
    await holder.attempt(next, true, call);
    await queue(backend, others);
    const [second] = others.map((each) => backend.awaitTurn(each, callFor(20_000)));
    const turn = holder.awaitTurn(next, callFor(20_000));
    await holder.release(held, call);
    held = (await turn) as typeof held;
    const readEntries = countEntries(client);
    await holder.release(held, call);
    expect(await second).toBeDefined();
    expect(readEntries()).toBeLessThan(5);
  });

  test('a waiter behind a stolen lock waits for the acquisition that stole it', async () => {
    const [holder, backend, other] = [etcd.open(), etcd.open(), etcd.open()];
    const name = freshName();
    for (const stealer of [backend, other]) {
      const held = await take(holder, request(name));
      const wanted = request(name);
      await backend.attempt(wanted, true, call);
      const turn = backend.awaitTurn(wanted, callFor(20_000));
      const stealing = { ...request(name, undefined, 5_000), steal: true } as const;
      const stolen = await stealer.attempt(stealing, false, call);
      expect(await holder.release(held, call)).toBe('not-held');
      if (stolen.status !== 'granted') return expect.fail('the steal was not granted');
      const early = turn.then(async () => (await backend.inspect(name, call)).holders);
      // The mark moves with the hold to a lease for another ttl.
      expect(await stealer.renew([{ grant: stolen.grant, ttlMs: 9_000 }], call)).toMatchObject([
        { status: 'held' },
      ]);
      const { kvs } = await etcd.client().getAll().prefix('locks///stolen/').exec();
      expect(kvs).toHaveLength(1);
      const held2 = (await holder.inspect(name, call)).holders;
      expect(ids(held2)).toEqual([stealing.acquisitionId]);
      expect(await stealer.release(stolen.grant, call)).toBe('released');
      expect(ids(await early)).toEqual([wanted.acquisitionId]);
      expect((await etcd.client().getAll().prefix('locks///stolen/').exec()).kvs).toEqual([]);
      await backend.abandon(wanted, call);
    }
  });

  const readers: LockMode = { kind: 'shared' };
  const permits: LockMode = { kind: 'permit', limit: 60, weight: 1 };
  test.for<[LockMode, LockMode]>([
    [readers, { kind: 'exclusive' }],
    [permits, { ...permits, weight: 60 }],
  ])(
    'those that %o grants together are resolved in their order, with a few transactions',
    async ([mode, ahead]) => {
      const counted = new Counted(etcd.client());
      const [holder, backend] = [etcd.open(), etcd.open(counted.client)];
      const name = freshName();
      for (let round = 0; round < 3; round += 1) {
        const first = await take(holder, request(name, ahead));
        const waiting = requestsFor(name, 60, mode);
        for (const each of waiting.slice(0, 5)) await backend.attempt(each, true, call);
        await queue(backend, waiting.slice(5));
        const order = await waitersOf(backend, name);
        const resolved: Grant[] = [];
        const grants = waiting.map(async (each) => {
          const grant = (await backend.awaitTurn(each, callFor(20_000))) ?? (await acquire(backend, each));
          resolved.push(grant);
        });
        counted.take();
        await holder.release(first, call);
        await Promise.all(grants);
        expect(resolved.map((grant) => grant.request.acquisitionId)).toEqual(order);
        const tokens = resolved.map(({ fencingToken = 0n }) => fencingToken);
        expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => Number(a - b)));
        expect(counted.take()['txn']).toBeLessThan(40);
        await Promise.all(resolved.map((grant) => backend.release(grant, call)));
      }
    },
  );

  test('a thousand that are abandoned together are deleted by a few transactions', async () => {
    const counted = new Counted(etcd.client());
    const backend = etcd.open(counted.client);
    const name = freshName();
    const first = await take(backend, request(name));
    const waiting = requestsFor(name, MANY);
    await queue(backend, waiting);
    counted.take();
    await Promise.all(waiting.map((each) => backend.abandon(each, call)));
    expect(counted.take()['txn']).toBeLessThan(20);
    expect(await waitersOf(backend, name)).toEqual([]);
    await backend.release(first, call);
  });

  test('hundreds of holds that are released together are deleted by a few transactions', async () => {
    const counted = new Counted(etcd.client());
    const backend = etcd.open(counted.client);
    const size = 300;
    const names = Array.from({ length: size / 2 }, () => request(freshName()));
    const readers = requestsFor(freshName(), size / 2, { kind: 'shared' });
    const held = await Promise.all([...names, ...readers].map((each) => acquire(backend, each)));
    counted.take();
    const released = held.map((grant) => backend.release(grant, call));
    // A release that is repeated before it was sent is sent once.
    released.push(...held.map((grant) => backend.release(grant, call)));
    expect(new Set(await Promise.all(released))).toEqual(new Set(['released']));
    expect(counted.take()['txn']).toBeLessThan(10);
    // A repeated release is one of nothing.
    expect(await backend.release(held[0] as Grant, call)).toBe('not-held');
  });

  test('a conflicting request does not keep others out, and a free lock is granted', async () => {
    const [holder, backend] = [etcd.open(), etcd.open()];
    const name = freshName();
    await take(holder, request(name));
    const permit: LockMode = { kind: 'permit', limit: 2, weight: 1 };
    const attempts = await queue(backend, [
      ...requestsFor(name, 5),
      ...requestsFor(name, 5, permit),
      ...requestsFor(name, 5, { kind: 'shared' }),
    ]);
    expect(attempts.filter(({ status }) => status === 'conflict')).toHaveLength(5);
    expect(await waitersOf(holder, name)).toHaveLength(10);
    const free = requestsFor(freshName(), 20);
    const taken = await queue(backend, free);
    expect(taken.filter(({ status }) => status === 'granted')).toHaveLength(1);
  });
});

/** Counts the entries that a client reads from now on. */
function countEntries(client: Etcd3): () => number {
  const { kv } = client;
  const send = kv.txn.bind(kv);
  let count = 0;
  const add = ({ responses }: ITxnResponse): void => {
    for (const { response_range: range, response_txn: nested } of responses) {
      count += range?.kvs?.length ?? 0;
      if (nested) add(nested);
    }
  };
  kv.txn = async (sent, options) => {
    const response = await send(sent, options);
    add(response);
    return response;
  };
  return () => count;
}
