import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import type { AcquireRequest, Grant, LockMode } from '@locks/core/backend';
import type { Etcd3 } from 'etcd3';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  acquire,
  type Backend,
  call,
  callFor,
  Counted,
  freshName,
  grants,
  holdBack,
  holdBackAnswer,
  interceptKeepAlives,
  request,
  take,
  useEtcd,
} from './fixture.ts';

const shared: LockMode = { kind: 'shared' };
/** The check of the waiters, which finds everything in the end, does not come within these tests. */
const WITHOUT_CHECKS = { waiterTtlMs: 60_000 };

describe('a hand-off within one process', () => {
  const etcd = useEtcd();

  const holdersOf = async (backend: Backend, name: string): Promise<string[]> =>
    (await backend.inspect(name, call)).holders.map(({ acquisitionId }) => acquisitionId);
  const keyOf = ({ resource, acquisitionId }: AcquireRequest): string =>
    `locks//${resource}/${acquisitionId}`;

  const leasesOf = async (client: Etcd3): Promise<string[]> =>
    (await client.leaseClient.leaseLeases()).leases.map(({ ID }) => ID);

  /** A backend that holds a lock, and whose waiters wait for it, one behind the other. */
  async function queued(backend: Backend, waiters: number) {
    const name = freshName();
    const held = await take(backend, request(name));
    const all = Array.from({ length: waiters }, () => request(name));
    const turns: Promise<Grant | undefined>[] = [];
    for (const each of all) {
      expect((await backend.attempt(each, true, call)).status).toBe('contended');
      const turn = backend.awaitTurn(each, callFor(10_000));
      turn.catch(() => {});
      turns.push(turn);
    }
    // The lease for the next holder is granted meanwhile.
    await sleep(50);
    return { name, held, all, turns };
  }

  test('is one transaction, in the order of the queue, with rising tokens, and needs no watch', async () => {
    const counted = new Counted(etcd.client());
    const watches = vi.spyOn(counted.client.watchClient, 'watch');
    const backend = etcd.open(counted.client);
    const { held, all, turns } = await queued(backend, 5);
    counted.take();
    let last = held;
    for (const [index, turn] of turns.entries()) {
      expect(await backend.release(last, call)).toBe('released');
      const next = (await turn) as Grant;
      expect(next.request).toBe(all[index]);
      expect(next.fencingToken).toBeGreaterThan(last.fencingToken as bigint);
      expect(next.countedFrom).toBeGreaterThan(last.countedFrom - 1_000);
      last = next;
    }
    expect(counted.take()).toEqual({ txn: 5 });
    expect(await backend.release(last, call)).toBe('released');
    // Holds get a watch later, if they last.
    expect(watches.mock.calls.length).toBeLessThanOrEqual(1);
  });

  test('does not grant a waiter beside the acquisition that stole the lock', async () => {
    const client = etcd.client();
    const [other, backend] = [etcd.open(), etcd.open(client, WITHOUT_CHECKS)];
    const { name, held, all, turns } = await queued(backend, 1);
    const slow = holdBack(client, grants(all[0] as AcquireRequest));
    const released = backend.release(held, call);
    await slow.sent;
    const stolen = await other.attempt({ ...request(name), steal: true }, false, call);
    if (stolen.status !== 'granted') return expect.fail(`it is ${stolen.status}`);
    await slow.deliver();
    expect(await released).toBe('not-held');
    expect(await holdersOf(other, name)).toEqual([stolen.grant.request.acquisitionId]);
    await other.release(stolen.grant, call);
    expect(await turns[0]).toBeDefined();
  });

  test('does not grant a writer behind several readers before the last of them leaves', async () => {
    const backend = etcd.open(undefined, WITHOUT_CHECKS);
    const name = freshName();
    const [first, second] = [
      await take(backend, request(name, shared)),
      await take(backend, request(name, shared)),
    ];
    const writer = request(name);
    expect((await backend.attempt(writer, true, call)).status).toBe('contended');
    const turn = backend.awaitTurn(writer, callFor(10_000));
    await sleep(50);
    await backend.release(second, call);
    expect(await Promise.race([turn, sleep(300)])).toBeUndefined();
    expect(await holdersOf(backend, name)).toEqual([first.request.acquisitionId]);
    await backend.release(first, call);
    expect(await turn).toBeDefined();
  });

  test('does not grant a waiter whose entry was deleted ahead of one that waits', async () => {
    const [other, backend] = [etcd.open(), etcd.open(undefined, WITHOUT_CHECKS)];
    const { name, held, all, turns } = await queued(backend, 1);
    const behind = acquire(other, request(name));
    await vi.waitFor(async () => expect((await other.inspect(name, call)).waiters).toHaveLength(2));
    await etcd
      .client()
      .delete()
      .key(keyOf(all[0] as AcquireRequest));
    await backend.release(held, call);
    // Core attempts again, at the end of the queue.
    expect(await turns[0]).toBeUndefined();
    await other.release(await behind, call);
  });

  test('whose waiter was abandoned before it arrived releases the lock all the same, and grants nothing', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const { name, held, all } = await queued(backend, 1);
    const waiter = all[0] as AcquireRequest;
    const slow = holdBack(client, grants(waiter));
    const released = backend.release(held, call);
    await slow.sent;
    await backend.abandon(waiter, call);
    await slow.deliver().catch(() => {});
    expect(await released).toBe('released');
    expect(await holdersOf(backend, name)).toEqual([]);
  });

  test('whose waiter is abandoned after it arrived leaves no hold', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const { name, held, all } = await queued(backend, 1);
    const waiter = all[0] as AcquireRequest;
    const slow = holdBack(client, grants(waiter), { answer: false });
    const released = backend.release(held, call);
    released.catch(() => {});
    await slow.sent;
    await slow.deliver();
    await backend.abandon(waiter, call);
    await expect(released).rejects.toThrow('UNAVAILABLE');
    expect(await backend.release(held, call)).toBe('unknown');
    expect(await holdersOf(backend, name)).toEqual([]);
  });

  test('keeps its lease when a check is answered late, which read the queue before the hand-off', async () => {
    // The first heartbeat is to check the waiters: its clock must have passed the first five seconds.
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_000);
    onTestFinished(() => clock.mockRestore());
    const client = etcd.client();
    const keepAlives: (() => void)[] = [];
    let heldBack = false;
    interceptKeepAlives(client, { write: (send) => void (heldBack ? keepAlives.push(send) : send()) });
    const backend = etcd.open(client, { waiterTtlMs: 3_000 });
    const { held, turns } = await queued(backend, 1);
    const check = holdBackAnswer(
      client,
      ({ success }) => success?.every((each) => each.request_range) === true,
    );
    await check.answered;
    heldBack = true;
    expect(await backend.release(held, call)).toBe('released');
    check.deliver();
    await nextIteration();
    expect(keepAlives).toHaveLength(1);
    for (const send of keepAlives.splice(0)) send();
    heldBack = false;
    const holders = [(await turns[0]) as Grant, await take(backend, request(freshName()))];
    const leases = holders.map(async (each) => (await client.get(keyOf(each.request)).exec()).kvs[0]?.lease);
    expect(new Set(await Promise.all(leases)).size).toBe(2);
  });

  test.for(['at once', 'later', 'never'])(
    'that got no answer is found by the waiter; it arrives %s',
    async (when) => {
      const client = etcd.client();
      const backend = etcd.open(client, WITHOUT_CHECKS);
      const { name, held, all, turns } = await queued(backend, 1);
      const slow = holdBack(client, grants(all[0] as AcquireRequest), { answer: false });
      const released = backend.release(held, call);
      released.catch(() => {});
      await slow.sent;
      if (when === 'later') await sleep(300);
      if (when !== 'never') await slow.deliver();
      await expect(released).rejects.toThrow('UNAVAILABLE');
      // Without a second release the waiter finds what arrived.
      if (when === 'never') expect(await backend.release(held, call)).toBe('released');
      const grant = (await turns[0]) as Grant;
      expect(await holdersOf(backend, name)).toEqual([all[0]?.acquisitionId]);
      expect(await backend.release(grant, call)).toBe('released');
    },
  );

  test('for which the server has lost the lease releases the lock, and the waiter gets another lease', async () => {
    const client = etcd.client();
    const backend = etcd.open(client, WITHOUT_CHECKS);
    const before = await leasesOf(client);
    const { name, held, turns } = await queued(backend, 1);
    const { kvs } = await client.getAll().prefix('locks/').exec();
    const used = new Set([...before, ...kvs.map(({ lease }) => lease)]);
    const unused = (await leasesOf(client)).filter((id) => !used.has(id));
    expect(unused).toHaveLength(1);
    await client.leaseClient.leaseRevoke({ ID: unused[0] as string });
    expect(await backend.release(held, call)).toBe('released');
    const grant = (await turns[0]) as Grant;
    expect(await holdersOf(backend, name)).toEqual([grant.request.acquisitionId]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('a waiter learns that the hold ahead was deleted by hand', async () => {
    const backend = etcd.open(undefined, WITHOUT_CHECKS);
    const { held, turns } = await queued(backend, 1);
    await etcd.client().delete().key(keyOf(held.request));
    expect(await Promise.race([turns[0], sleep(3_000)])).toMatchObject({
      request: expect.anything(),
    });
  });

  test('a waiter learns that the waiter ahead has left, and that its entry was deleted by hand', async () => {
    const [other, backend] = [etcd.open(), etcd.open(undefined, WITHOUT_CHECKS)];
    const name = freshName();
    const held = await take(other, request(name));
    const [first, second, third] = [request(name), request(name), request(name)];
    const turns: Promise<Grant | undefined>[] = [];
    for (const each of [first, second, third]) {
      await backend.attempt(each, true, call);
      turns.push(backend.awaitTurn(each, callFor(4_000)));
    }
    await backend.abandon(first, call);
    await etcd.client().delete().key(keyOf(second));
    await other.release(held, call);
    expect(await turns[1]).toBeUndefined();
    expect(await turns[2]).toMatchObject({ request: third });
  });
});
