import type { AcquireRequest, LockMode } from '@locks/core/backend';
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

const CROWD = 1_000;

/** Many waiters of one process on one lock. */
describe('a crowd', () => {
  const etcd = useEtcd();
  const queue = (backend: Backend, all: readonly AcquireRequest[]) =>
    Promise.all(all.map((each) => backend.attempt(each, true, call)));
  const crowd = (name: string, size: number, mode?: LockMode) =>
    Array.from({ length: size }, () => request(name, mode));
  const ids = (all: readonly { readonly acquisitionId: string }[]) =>
    all.map(({ acquisitionId }) => acquisitionId);
  const waitersOf = async (backend: Backend, name: string) =>
    ids((await backend.inspect(name, call)).waiters);

  test('a thousand go into the queue with a few transactions, in their order', async () => {
    const counted = new Counted(etcd.client());
    const [holder, backend] = [etcd.open(), etcd.open(counted.client)];
    const name = freshName();
    await take(holder, request(name));
    const waiting = crowd(name, CROWD);
    await queue(backend, waiting);
    const { txn = 0, leaseGrant = 0 } = counted.take();
    expect(txn).toBeLessThan(40);
    expect(leaseGrant).toBeLessThan(5);
    // The first asked for a lease of its own, since nothing was known to be in use.
    const behindFirst = ids(waiting.slice(1));
    expect((await waitersOf(backend, name)).filter((id) => behindFirst.includes(id))).toEqual(behindFirst);
    const turns = waiting.map((each) => backend.awaitTurn(each, callFor(3_000)));
    await Promise.all(turns);
    const { txn: looks = 0, ...others } = counted.take();
    expect(looks).toBeLessThan(5);
    expect(others).toEqual({});
  });

  test('a process that stood still queues again with a few requests, and is served', async () => {
    const client = etcd.client();
    const counted = new Counted(client);
    const [holder, backend] = [etcd.open(), etcd.open(client, { waiterTtlMs: 1_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = crowd(name, 300);
    const served: string[] = [];
    const all = waiting.map(async (each) => {
      const grant = await acquire(backend, each, callFor(30_000));
      served.push(each.acquisitionId);
      expect(await backend.release(grant, call)).toBe('released');
    });
    await vi.waitFor(async () => expect(await waitersOf(holder, name)).toHaveLength(300), 5_000);
    const [before] = await waitersOf(holder, name);
    const { kvs } = await client.getAll().prefix(`locks/${name}/${before}`).exec();
    counted.take();
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    await vi.waitFor(async () => {
      const [now] = (await client.getAll().prefix(`locks/${name}/`).exec()).kvs.slice(-1);
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

  test('of those who were queued in one step nobody overtakes', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    await backend.attempt(request(name), true, call);
    const [ahead] = (await holder.inspect(name, call)).waiters;
    const waiting = crowd(name, 4);
    // The first of them is on its way, the others come after it together.
    const [alone, ...together] = waiting as [AcquireRequest, ...AcquireRequest[]];
    const late = holdBack(client);
    const queued = queue(backend, [alone, ...together]);
    await late.sent;
    await late.deliver();
    await queued;
    const { kvs } = await client.getAll().prefix(`locks/${name}/`).exec();
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

  test('one that contradicts the others keeps nobody out, and a free lock is taken', async () => {
    const [holder, backend] = [etcd.open(), etcd.open()];
    const name = freshName();
    await take(holder, request(name));
    const permit: LockMode = { kind: 'permit', limit: 2, weight: 1 };
    const attempts = await queue(backend, [
      ...crowd(name, 5),
      ...crowd(name, 5, permit),
      ...crowd(name, 5, { kind: 'shared' }),
    ]);
    expect(attempts.filter(({ status }) => status === 'conflict')).toHaveLength(5);
    expect(await waitersOf(holder, name)).toHaveLength(10);
    const free = crowd(freshName(), 20);
    const taken = await queue(backend, free);
    expect(taken.filter(({ status }) => status === 'granted')).toHaveLength(1);
  });
});
