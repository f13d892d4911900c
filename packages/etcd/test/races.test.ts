import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireRequest, Grant, LockMode } from '@locks/core/backend';
import type { ITxnRequest } from 'etcd3';
import { describe, expect, test, vi } from 'vitest';
import {
  acquire,
  type Backend,
  call,
  callFor,
  Counted,
  deferred,
  freshName,
  grants,
  holdBack,
  request,
  take,
  useEtcd,
} from './fixture.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });

/** Requests with the key of an acquisition. */
const names =
  ({ acquisitionId }: AcquireRequest) =>
  (sent: ITxnRequest): boolean =>
    JSON.stringify(sent, (_, value: unknown) =>
      (value as { type?: string } | null)?.type === 'Buffer'
        ? Buffer.from((value as { data: number[] }).data).toString()
        : value,
    ).includes(`/${acquisitionId}`);

/** A released lease of the server serves the next lock. */
describe('a lease', () => {
  const etcd = useEtcd();

  test.for(['release', 'abandon'] as const)(
    'is not taken from the next lock by the second answer to a repeated %s',
    async (way) => {
      const client = etcd.client();
      const counted = new Counted(client);
      const backend = etcd.open(client);
      const grant = await take(backend, request(freshName()));
      const release = () =>
        way === 'release' ? backend.release(grant, call) : backend.abandon(grant.request, call);
      const slow = holdBack(client);
      const first = release();
      await slow.sent;
      await release();
      const { leaseGrant: granted = 0 } = counted.take();
      expect(granted).toBe(1);
      const next = await take(backend, request(freshName()));
      await slow.deliver();
      await first;
      const other = await take(backend, request(freshName()));
      // One lease was used again, one is new, and none was revoked.
      const { leaseGrant, leaseRevoke } = counted.take();
      expect({ leaseGrant, leaseRevoke }).toEqual({ leaseGrant: 1 });
      for (const held of [next, other]) expect(await backend.release(held, call)).toBe('released');
    },
  );
});

/** The state may change between the sending and the arrival of a claim. */
describe('claims', () => {
  const etcd = useEtcd();
  const waitersOf = async (backend: Backend, name: string) =>
    (await backend.inspect(name, call)).waiters.length;
  const holdersOf = async (backend: Backend, name: string) =>
    (await backend.inspect(name, call)).holders.map(({ acquisitionId }) => acquisitionId);

  test('the second in the queue is not granted before the first', async () => {
    const [a, b, c] = [etcd.open(), etcd.open(), etcd.open()];
    const name = freshName();
    const first = await take(a, request(name));
    const [second, third] = [request(name), request(name)];
    await b.attempt(second, true, call);
    await c.attempt(third, true, call);
    await a.release(first, call);
    expect((await c.attempt(third, true, call)).status).toBe('contended');
    expect((await b.attempt(second, true, call)).status).toBe('granted');
    expect((await c.attempt(third, true, call)).status).toBe('contended');
  });

  test.for(['one', 'in one step'] as const)(
    'an attempt (%s) of an id whose hold ends meanwhile starts anew, or may be repeated, and is then contended',
    async (way) => {
      const [client, b] = [etcd.client(), etcd.open()];
      const a = etcd.open(client);
      const wanted = request(freshName());
      const attempt = async (): Promise<unknown> =>
        way === 'one'
          ? (await a.attempt(wanted, false, call)).status
          : ((await a.attemptMany([wanted], call)) ?? 'contended');
      const grant = await take(a, wanted);
      const slow = holdBack(client, grants(wanted));
      const again = attempt().catch((error: unknown) => (a.isRetryable(error) ? 'again' : error));
      await slow.sent;
      await b.forceRelease(wanted.resource, undefined, call);
      const next = await take(b, request(wanted.resource));
      await vi.waitFor(() => expect(grant.lost?.aborted).toBe(true), 10_000);
      await slow.deliver();
      expect(await again).toBe(way === 'one' ? 'contended' : 'again');
      expect(await attempt()).toBe('contended');
      expect(await holdersOf(b, wanted.resource)).toEqual([next.request.acquisitionId]);
    },
  );

  test('the first in the queue is not granted beside an acquisition that stole later', async () => {
    const [a, b] = [etcd.open(), etcd.open()];
    const name = freshName();
    await take(a, request(name));
    const waiting = request(name);
    await b.attempt(waiting, true, call);
    const stealer = request(name);
    expect((await a.attempt({ ...stealer, steal: true }, false, call)).status).toBe('granted');
    expect((await b.attempt(waiting, true, call)).status).toBe('contended');
    expect(await holdersOf(a, name)).toEqual([stealer.acquisitionId]);
  });

  test.for([
    ['a reader', exclusive, shared, exclusive],
    ['a permit', permit(2, 2), permit(2), permit(2, 2)],
  ] as const)(
    'the claim of %s that arrives after a steal grants nothing',
    async ([, holding, mode, stealing]) => {
      const client = etcd.client();
      const [a, b] = [etcd.open(), etcd.open(client)];
      const name = freshName();
      const first = await take(a, request(name, holding));
      const waiting = request(name, mode);
      await b.attempt(waiting, true, call);
      const turn = b.awaitTurn(waiting, callFor(10_000));
      const claim = holdBack(client, grants(waiting));
      await a.release(first, call);
      await claim.sent;
      const stealer = request(name, stealing);
      expect((await a.attempt({ ...stealer, steal: true }, false, call)).status).toBe('granted');
      await claim.deliver();
      expect(await holdersOf(a, name)).toEqual([stealer.acquisitionId]);
      await b.abandon(waiting, call);
      expect(await turn).toBeUndefined();
    },
  );

  test('permits are not granted beside a steal that was read after their turn had come', async () => {
    const client = etcd.client();
    const [holder, backend, thief] = [etcd.open(), etcd.open(client), etcd.open()];
    const name = freshName();
    const first = await take(holder, request(name, permit(1)));
    const wanted = request(name, permit(1));
    expect((await backend.attempt(wanted, true, call)).status).toBe('contended');
    const turn = backend.awaitTurn(wanted, callFor(15_000));
    // Another lock takes the lease that is ready: the claim has to ask for one, and gets it late.
    await take(backend, request(freshName()));
    const { leaseClient, kv } = client;
    const grant = leaseClient.leaseGrant.bind(leaseClient);
    const [asked, mayGrant] = [deferred<void>(), deferred<void>()];
    leaseClient.leaseGrant = async (...args) => {
      asked.resolve();
      await mayGrant.promise;
      return await grant(...args);
    };
    await holder.release(first, call);
    await asked.promise;
    const sent = vi.spyOn(kv, 'txn');
    const stolen = await thief.attempt({ ...request(name, permit(1)), steal: true }, false, call);
    if (stolen.status !== 'granted') return expect.fail(`it is ${stolen.status}`);
    await vi.waitFor(() => expect(sent).toHaveBeenCalled(), 5_000);
    await Promise.all(sent.mock.results.map(({ value }) => value as Promise<unknown>));
    mayGrant.resolve();
    await vi.waitFor(() => expect(sent.mock.calls.some(([each]) => grants(wanted)(each))).toBe(true), 5_000);
    await Promise.all(sent.mock.results.map(({ value }) => value as Promise<unknown>));
    expect(await holdersOf(thief, name)).toEqual([stolen.grant.request.acquisitionId]);
    await thief.release(stolen.grant, call);
    expect(await backend.release((await turn) as Grant, call)).toBe('released');
  });

  test('a reader keeps the lease to which a renewal has moved it when its attempt arrives once more', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const wanted = request(freshName(), shared);
    const { kv, leaseClient } = client;
    const send = vi.spyOn(kv, 'txn');
    const grant = await acquire(backend, wanted);
    const [attempt] = send.mock.calls.map(([each]) => each).filter(grants(wanted));
    send.mockRestore();
    const revoke = leaseClient.leaseRevoke.bind(leaseClient);
    const mayRevoke = deferred<void>();
    const revoked = deferred<unknown>();
    leaseClient.leaseRevoke = async (...args) => {
      await mayRevoke.promise;
      const answer = revoke(...args);
      revoked.resolve(answer);
      return await answer;
    };
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    await kv.txn(attempt as ITxnRequest);
    mayRevoke.resolve();
    await revoked.promise;
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('a steal is decided again if another acquisition was granted while it was under way', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(a, request(name));
    const stealer = request(name);
    let writes = 0;
    // The first write finds the lock held; the second one ends only that hold.
    const write = holdBack(client, (sent) => grants(stealer)(sent) && (writes += 1) === 2);
    const stealing = b.attempt({ ...stealer, steal: true }, false, call);
    await write.sent;
    await a.release(first, call);
    const next = request(name);
    await take(a, next);
    await write.deliver();
    expect((await stealing).status).toBe('granted');
    expect(await holdersOf(a, name)).toEqual([stealer.acquisitionId]);
  });

  test('a single attempt is decided again if another acquisition was granted while it was under way', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(a, request(name, permit(3)));
    const tried = request(name, permit(3, 2));
    let writes = 0;
    const attempt = holdBack(client, (sent) => grants(tried)(sent) && (writes += 1) === 2);
    const trying = b.attempt(tried, false, call);
    await attempt.sent;
    const other = await take(a, request(name, permit(3)));
    await attempt.deliver();
    expect((await trying).status).toBe('contended');
    expect(await holdersOf(a, name)).toHaveLength(2);
    await a.release(first, call);
    await a.release(other, call);
  });

  test('a reader that saw one writer leave does not overtake the other', async () => {
    const [a, b] = [etcd.open(), etcd.open()];
    const name = freshName();
    await take(a, request(name, shared));
    const writers = [request(name), request(name)];
    for (const writer of writers) await a.attempt(writer, true, call);
    const reader = request(name, shared);
    await b.attempt(reader, true, call);
    const turn = b.awaitTurn(reader, callFor(1_000));
    await a.abandon(writers[1] as never, call);
    expect(await turn).toBeUndefined();
    expect(await waitersOf(a, name)).toBe(2);
    await a.abandon(writers[0] as never, call);
    expect((await acquire(b, reader)).fencingToken).toBeGreaterThan(0n);
  });

  test('a claim that arrives after the next one was granted changes nothing', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const writer = await take(a, request(name));
    const reader = request(name, shared);
    await b.attempt(reader, true, call);
    const late = holdBack(client, grants(reader), { answer: false });
    const turn = b.awaitTurn(reader, callFor(10_000));
    turn.catch(() => {});
    await a.release(writer, call);
    await late.sent;
    // The client sends the claim once more, while its first sending is still under way.
    const key = Buffer.from(`locks//${name}/${reader.acquisitionId}`);
    const { kvs } = await client.kv.range({ key });
    const value = Buffer.from(`rs${kvs[0]?.value.toString().slice(2)}`);
    await client.kv.put({ key, value, lease: kvs[0]?.lease as string });
    await late.deliver();
    await expect(turn).rejects.toThrow('UNAVAILABLE');
    const again = await b.attempt(reader, true, call);
    expect(again.status).toBe('granted');
    const [holder] = (await a.inspect(name, call)).holders;
    expect(holder?.fencingToken).toBe(again.status === 'granted' ? again.grant.fencingToken : undefined);
    const written = (await client.kv.range({ key })).kvs[0];
    expect(written?.version).toBe('2');
  });

  test.for(['a process that waits for others as well', 'a process that waits for nothing else'])(
    'an unanswered attempt of %s returns, when it is repeated, the grant that it had made',
    async (which) => {
      const client = etcd.client();
      const [a, b] = [etcd.open(), etcd.open(client)];
      const name = freshName();
      if (which.endsWith('as well')) {
        const busy = freshName();
        await take(a, request(busy));
        await b.attempt(request(busy), true, call);
      }
      const wanted = request(name);
      const lost = holdBack(client, grants(wanted), { answer: false });
      const attempt = b.attempt(wanted, true, call);
      attempt.catch(() => {});
      await lost.sent;
      const { header } = await lost.deliver();
      await expect(attempt).rejects.toThrow('UNAVAILABLE');
      const again = await b.attempt(wanted, true, call);
      expect(again).toMatchObject({
        status: 'granted',
        grant: { fencingToken: 128n * BigInt(header.revision) },
      });
      expect(await holdersOf(a, name)).toEqual([wanted.acquisitionId]);
      if (again.status === 'granted') expect(await b.release(again.grant, call)).toBe('released');
    },
  );

  test.for(['before', 'after', 'before, and is released within,'])(
    'a request to queue that arrives %s the loss of its hold, which a later sending was granted, leaves no waiter',
    async (when) => {
      const client = etcd.client();
      const [a, b] = [etcd.open(), etcd.open(client)];
      const name = freshName();
      const [first, wanted, ahead] = [await take(a, request(name)), request(name), request(name)];
      // Behind a waiter of its process it asks for a place in the queue, and not for the lock.
      await b.attempt(ahead, true, call);
      const late = holdBack(client, names(wanted), { answer: false });
      await expect(b.attempt(wanted, true, call)).rejects.toThrow('UNAVAILABLE');
      await b.abandon(ahead, call);
      await a.release(first, call);
      const granted = await b.attempt(wanted, true, call);
      if (granted.status !== 'granted') throw new Error('the lock is free');
      if (when.endsWith('within,')) {
        await a.forceRelease(name, undefined, call);
        await late.deliver();
        expect(await b.release(granted.grant, call)).toBe('not-held');
      } else if (when === 'before') {
        const refusal = holdBack(client, ({ success }) => success?.length === 2, { answer: false });
        await a.forceRelease(name, undefined, call);
        await refusal.sent;
        await late.deliver();
        expect(await waitersOf(a, name)).toBe(1);
      } else {
        await a.forceRelease(name, undefined, call);
        await vi.waitFor(() => expect(granted.grant.lost?.aborted).toBe(true));
        await delay(100);
        await late.deliver();
      }
      await vi.waitFor(async () => expect(await waitersOf(a, name)).toBe(0), 5_000);
      expect((await a.attempt(request(name), true, call)).status).toBe('granted');
    },
  );

  test('a conflict writes nothing into the queue, not even for a moment', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(a, request(name, permit(2, 2)));
    await a.attempt(request(name, permit(2)), true, call);
    await b.attempt(request(freshName()), true, call);
    const puts: string[] = [];
    const watcher = await client.watch().prefix(`locks//${name}/`).create();
    watcher.on('put', ({ key }) => puts.push(key.toString()));
    // The process has a session already, and finds the conflict in one transaction all the same.
    await take(b, request(`${name} busy`));
    await b.attempt(request(`${name} busy`), true, call);
    expect(await b.attempt(request(name, permit(3)), true, call)).toEqual({
      status: 'conflict',
      with: permit(2, 2),
    });
    expect(await b.attempt(request(name), true, call)).toMatchObject({ status: 'conflict' });
    await a.release(first, call);
    await vi.waitFor(async () => expect(await waitersOf(a, name)).toBe(1));
    expect(puts).toEqual([]);
    await watcher.cancel();
  });

  test('a lease serves no other lock while a claim with it may be under way', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(a, request(name));
    const waiting = request(name);
    await b.attempt(waiting, true, call);
    const claim = holdBack(client, grants(waiting), { answer: false });
    const turn = b.awaitTurn(waiting, callFor(10_000));
    turn.catch(() => {});
    await a.release(first, call);
    await claim.sent;
    // The client reports a failure, and the claim may arrive all the same.
    await b.abandon(waiting, call);
    const other = await take(b, request(freshName()));
    const delivered = claim.deliver();
    await expect(delivered)
      .rejects.toThrow('lease not found')
      .catch(async () => {
        expect((await delivered).responses[0]?.response_txn.succeeded).toBe(false);
      });
    expect(await holdersOf(a, name)).toEqual([]);
    expect(await b.renew([{ grant: other, ttlMs: 20_000 }], call)).toMatchObject([{ status: 'held' }]);
    await b.release(other, call);
  });

  test('a lease stays with a claim that may be under way, even while its turn has passed', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(a, request(name));
    const waiting = request(name);
    await b.attempt(waiting, true, call);
    const turn = b.awaitTurn(waiting, callFor(10_000));
    turn.catch(() => {});
    const claim = holdBack(client, grants(waiting), { answer: false });
    await a.release(first, call);
    await claim.sent;
    // The client reports a failure, and the claim is still under way.
    const stolen = await a.attempt({ ...request(name), steal: true }, false, call);
    await expect(turn).rejects.toThrow('UNAVAILABLE');
    expect((await b.attempt(waiting, true, call)).status).toBe('contended');
    const other = request(freshName());
    await take(b, other);
    if (stolen.status === 'granted') await a.release(stolen.grant, call);
    expect((await claim.deliver()).responses[0]?.response_txn.succeeded).toBe(true);
    const next = await acquire(b, waiting);
    const leases = await Promise.all(
      [waiting, other].map(async ({ resource, acquisitionId }) => {
        return (await client.get(`locks//${resource}/${acquisitionId}`).exec()).kvs[0]?.lease;
      }),
    );
    expect(leases[0]).not.toBe(leases[1]);
    expect(await b.release(next, call)).toBe('released');
  });

  test('a lease counts from before its request, however late the answer came', async () => {
    const client = etcd.client();
    const b = etcd.open(client);
    const grant = client.leaseClient.leaseGrant.bind(client.leaseClient);
    let sentAt = Number.NaN;
    client.leaseClient.leaseGrant = (...args) => {
      sentAt = performance.now();
      return grant(...args);
    };
    const granted = await take(b, request(freshName()));
    expect(granted.countedFrom).toBeLessThanOrEqual(sentAt);
    await b.release(granted, call);
  });

  test('an acquisition that is abandoned while its lease is granted is not attempted', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const wanted = request(freshName());
    const grant = client.leaseClient.leaseGrant.bind(client.leaseClient);
    let answer: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const asked = vi.fn();
    client.leaseClient.leaseGrant = async (...args) => {
      asked();
      await held;
      return await grant(...args);
    };
    const attempt = b.attempt(wanted, true, call);
    attempt.catch(() => {});
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    await b.abandon(wanted, call);
    answer();
    await expect(attempt).rejects.toThrow('abandoned');
    expect(await a.inspect(wanted.resource, call)).toMatchObject({ holders: [], waiters: [] });
  });

  test('a new limit is written again if an acquisition was granted while it was under way', async () => {
    const client = etcd.client();
    const [a, b] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    await take(a, request(name, permit(3)));
    const limits = holdBack(client, ({ success = [] }) =>
      success.some(({ request_txn: nested }) =>
        nested?.success?.some(({ request_put: put }) => put?.ignore_lease),
      ),
    );
    const resizing = b.resize(name, 5, call);
    await limits.sent;
    await take(a, request(name, permit(3)));
    await limits.deliver();
    expect(await resizing).toEqual({ status: 'set' });
    const { holders } = await a.inspect(name, call);
    expect(holders.map(({ mode }) => mode)).toMatchObject([{ limit: 5 }, { limit: 5 }]);
  });

  test('a release that is repeated after a lost answer does not report the lock as lost', async () => {
    const client = etcd.client();
    const b = etcd.open(client);
    const grant = await take(b, request(freshName()));
    const send = client.kv.txn.bind(client.kv);
    client.kv.txn = async (...args) => {
      client.kv.txn = send;
      await send(...args);
      throw Object.assign(new Error('14 UNAVAILABLE: the answer was lost'), { code: 14 });
    };
    await expect(b.release(grant, call)).rejects.toThrow('UNAVAILABLE');
    expect(await b.release(grant, call)).toBe('unknown');
    expect(await b.release(grant, call)).toBe('not-held');
  });
});
