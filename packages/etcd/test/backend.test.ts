import { createLocks } from '@locks/core';
import type { LockMode } from '@locks/core/backend';
import { Etcd3 } from 'etcd3';
import { startProxy } from '@locks/test-servers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { clientOptions, etcdBackend } from '../src/index.ts';
import {
  acquire,
  call,
  Counted,
  freshName,
  grants,
  holdBack,
  request,
  sendTwice,
  take,
  useEtcd,
} from './fixture.ts';

const shared: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });

describe('the etcd backend', () => {
  const etcd = useEtcd();

  test('costs one transaction to acquire, and one to release', async () => {
    const counted = new Counted(etcd.client());
    // From here on the layout is marked.
    await take(etcd.open(), request(freshName()));
    const backend = etcd.open(counted.client);
    const name = freshName();
    await backend.release(await take(backend, request(name)), call);
    expect(counted.take()).toEqual({ range: 1, leaseGrant: 1, txn: 2 });
    for (let n = 0; n < 5; n += 1) await backend.release(await take(backend, request(freshName())), call);
    expect(counted.take()).toEqual({ txn: 10 });
  });

  test('a foreign key under the name of a lock blocks it, and the message names that key', async () => {
    const name = freshName();
    const key = `locks//${name}/config`;
    await etcd.client().put(key).value('written by hand');
    const locks = createLocks(etcd.open());
    await expect(locks.lock(name).acquire({ waitMs: 5_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining(key),
    });
    expect(await locks.lock(name).tryAcquire()).toBeUndefined();
    expect((await locks.inspect(name)).holders).toMatchObject([{ label: `the foreign key ${key}` }]);
    await etcd.client().delete().key(key);
    await (await locks.lock(name).acquire()).release();
  });

  test('unused leases that the server lost are not tried one by one', async () => {
    const counted = new Counted(etcd.client());
    const backend = etcd.open(counted.client);
    const grants = await Promise.all(Array.from({ length: 30 }, () => take(backend, request(freshName()))));
    await Promise.all(grants.map((grant) => backend.release(grant, call)));
    const { leases } = await counted.client.leaseClient.leaseLeases();
    await Promise.all(leases.map(({ ID }) => counted.client.leaseClient.leaseRevoke({ ID })));
    counted.take();
    await backend.release(await take(backend, request(freshName())), call);
    expect(counted.take()).toEqual({ leaseGrant: 1, txn: 3 });
  });

  test('an unused lease that an administrator revoked is replaced', async () => {
    const backend = etcd.open();
    const client = etcd.client();
    const name = freshName();
    const first = await take(backend, request(name));
    const { kvs } = await client.getAll().prefix(`locks//${name}/`).exec();
    await backend.release(first, call);
    await client.leaseClient.leaseRevoke({ ID: kvs[0]?.lease as string });
    const second = await take(backend, request(name));
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    await backend.release(second, call);
  });

  test('no lease is shared by two locks, nor used again while a request that names it may be under way', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const grants = await Promise.all(Array.from({ length: 5 }, () => take(backend, request(freshName()))));
    const { kvs } = await client.getAll().prefix('locks/').exec();
    const locks = kvs.filter(({ key }) => key.toString() !== 'locks///layout');
    expect(new Set(locks.map(({ lease }) => lease)).size).toBe(locks.length);
    await Promise.all(grants.map((grant) => backend.release(grant, call)));

    // The answer is lost, and the client sends the request again.
    const send = client.kv.txn.bind(client.kv);
    const twice = vi.spyOn(client.kv, 'txn').mockImplementationOnce(async (sent, options) => {
      await send(sent, options);
      return await send(sent, options);
    });
    const name = freshName();
    const grant = await take(backend, request(name));
    twice.mockRestore();
    const held = await client.getAll().prefix(`locks//${name}/`).exec();
    const lease = held.kvs[0]?.lease as string;
    await backend.release(grant, call);
    await vi.waitFor(async () => {
      const { TTL } = await client.leaseClient.leaseTimeToLive({ ID: lease });
      expect(Number(TTL)).toBe(-1);
    });
  });

  test('hundreds of leases are renewed by a few transactions, and each answer is its own', async () => {
    const counted = new Counted(etcd.client());
    const backend = etcd.open(counted.client);
    const grants = await Promise.all(Array.from({ length: 250 }, () => take(backend, request(freshName()))));
    await backend.release(grants[7] as never, call);
    counted.take();
    const renewalStatuses = await backend.renew(
      grants.map((grant) => ({ grant, ttlMs: 20_000 })),
      call,
    );
    expect(counted.take()).toEqual({ txn: 3 });
    expect(renewalStatuses.filter(({ status }) => status === 'held')).toHaveLength(249);
    expect(renewalStatuses[7]).toMatchObject({ status: 'lost' });
    await Promise.all(grants.map((grant) => backend.release(grant, call)));
  });

  test('a renewal reports a deleted key as lost, although its lease lives on', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const name = freshName();
    const grant = await take(backend, request(name));
    await client.delete().prefix(`locks//${name}/`);
    expect(await backend.renew([{ grant, ttlMs: 20_000 }], call)).toMatchObject([
      { status: 'lost', reason: 'force-released' },
    ]);
    expect((await backend.inspect(name, call)).holders).toEqual([]);
  });

  test('a renewal of a stolen lock gives the reason that the watch has found already', async () => {
    const backend = etcd.open();
    const name = freshName();
    const stolen = await take(backend, request(name));
    const stealing = await take(etcd.open(), { ...request(name), steal: true });
    await vi.waitFor(() => expect(stolen.lost?.aborted).toBe(true));
    for (let times = 0; times < 2; times += 1) {
      expect(await backend.renew([{ grant: stolen, ttlMs: 20_000 }], call)).toEqual([
        { status: 'lost', reason: 'taken-over' },
      ]);
    }
    await backend.release(stealing, call);
  });

  test('another ttl takes effect, keeps the token and leaves no lease behind', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const name = freshName();
    const grant = await take(backend, request(name, undefined, 20_000));
    const before = (await client.getAll().prefix(`locks//${name}/`).exec()).kvs[0]?.lease as string;
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([
      { status: 'held', validForMs: 60_000 },
    ]);
    const [holder] = (await backend.inspect(name, call)).holders;
    expect(holder?.fencingToken).toBe(grant.fencingToken);
    expect(holder?.expiresInMs).toBeGreaterThan(50_000);
    await vi.waitFor(async () => {
      expect(Number((await client.leaseClient.leaseTimeToLive({ ID: before })).TTL)).toBe(-1);
    });
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('a request to queue that arrives after its abandon queues nothing', async () => {
    const client = etcd.client();
    const [holder, backend] = [etcd.open(), etcd.open(client)];
    const name = freshName();
    const first = await take(holder, request(name));
    // Another waiter of the process has made the session.
    await backend.attempt(request(name), true, call);
    const late = request(name);
    const send = client.kv.txn.bind(client.kv);
    const held: (() => Promise<unknown>)[] = [];
    const spy = vi.spyOn(client.kv, 'txn').mockImplementationOnce((sent, options) => {
      return new Promise((_, reject) => {
        held.push(() => send(sent, options).finally(() => reject(new Error('too late'))));
      });
    });
    const attempt = backend.attempt(late, true, call);
    attempt.catch(() => {});
    await vi.waitFor(() => expect(held).toHaveLength(1));
    await backend.abandon(late, call);
    spy.mockRestore();
    await held[0]?.();
    const { waiters } = await backend.inspect(name, call);
    expect(waiters.map(({ acquisitionId }) => acquisitionId)).not.toContain(late.acquisitionId);
    // Later requests are not refused.
    const next = request(name);
    expect((await backend.attempt(next, true, call)).status).toBe('contended');
    expect((await backend.inspect(name, call)).waiters.at(-1)?.acquisitionId).toBe(next.acquisitionId);
    await holder.release(first, call);
  });

  test('a request for a free lock that arrives after its abandon takes nothing', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const name = freshName();
    await backend.release(await take(backend, request(name)), call);
    const late = request(name);
    const send = client.kv.txn.bind(client.kv);
    const held: (() => Promise<unknown>)[] = [];
    const spy = vi.spyOn(client.kv, 'txn').mockImplementationOnce((sent, options) => {
      return new Promise((_, reject) => {
        held.push(() => send(sent, options).finally(() => reject(new Error('too late'))));
      });
    });
    backend.attempt(late, false, call).catch(() => {});
    await vi.waitFor(() => expect(held).toHaveLength(1));
    await backend.abandon(late, call);
    spy.mockRestore();
    await expect(held[0]?.()).rejects.toThrow('lease not found');
    expect(await backend.inspect(name, call)).toEqual({ name, holders: [], waiters: [] });
  });

  test('a waiter that read the lock as free is not granted after a steal', async () => {
    const [a, b] = [etcd.open(), etcd.open()];
    const name = freshName();
    const first = await take(a, request(name, permit(2, 2)));
    const waiting = request(name, permit(2, 1));
    await b.attempt(waiting, true, call);
    const stolen = await a.attempt({ ...request(name, permit(2, 2)), steal: true }, false, call);
    expect(stolen.status).toBe('granted');
    expect((await b.attempt(waiting, true, call)).status).toBe('contended');
    expect(await a.release(first, call)).toBe('not-held');
    expect((await a.inspect(name, call)).holders).toHaveLength(1);
  });

  test('a new limit is in every entry, and waiters that fit are granted', async () => {
    const [a, b] = [etcd.open(), etcd.open()];
    const name = freshName();
    const first = await take(a, request(name, permit(2, 2)));
    const waiting = acquire(b, request(name, permit(2, 1)));
    await vi.waitFor(async () => expect((await a.inspect(name, call)).waiters).toHaveLength(1));
    expect(await a.resize(name, 3, call)).toEqual({ status: 'set' });
    const second = await waiting;
    const { holders } = await a.inspect(name, call);
    expect(holders.map(({ mode }) => mode)).toMatchObject([{ limit: 3 }, { limit: 3 }]);
    expect(
      holders.find(({ acquisitionId }) => acquisitionId === first.request.acquisitionId)?.fencingToken,
    ).toBe(first.fencingToken);
    expect(await a.attempt(request(name, permit(2)), false, call)).toMatchObject({ status: 'conflict' });
    await a.release(first, call);
    await b.release(second, call);
    expect(await a.resize(name, 9, call)).toEqual({ status: 'set' });
    expect(await etcd.client().getAll().prefix(`locks//${name}/`).count()).toBe(0);
  });

  test('readers and a writer: shared with readers, one at a time with a writer', async () => {
    const [a, b] = [etcd.open(), etcd.open()];
    const name = freshName();
    const readers = await Promise.all([take(a, request(name, shared)), take(b, request(name, shared))]);
    const writer = acquire(b, request(name));
    await vi.waitFor(async () => expect((await a.inspect(name, call)).waiters).toHaveLength(1));
    expect((await a.attempt(request(name, shared), false, call)).status).toBe('contended');
    const late = acquire(a, request(name, shared));
    await vi.waitFor(async () => expect((await a.inspect(name, call)).waiters).toHaveLength(2));
    await a.release(readers[0] as never, call);
    await b.release(readers[1] as never, call);
    const written = await writer;
    expect(await b.downgrade(written, call)).toEqual({ status: 'held' });
    const read = await late;
    expect(read.fencingToken).toBeGreaterThan(written.fencingToken as bigint);
    expect(await b.downgrade(written, call)).toEqual({ status: 'held' });
    await b.release(written, call);
    await a.release(read, call);
  });

  test.for([
    'its answer is lost and it is sent again',
    'a renewal writes between its read and its write',
  ] as const)('a downgrade is done when %s', async (what) => {
    const client = etcd.client();
    const [backend, other] = [etcd.open(client), etcd.open()];
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    let downgrade: Promise<unknown>;
    if (what.startsWith('its answer')) {
      sendTwice(client, grants(wanted));
      downgrade = backend.downgrade(grant, call);
    } else {
      const write = holdBack(client, grants(wanted));
      downgrade = backend.downgrade(grant, call);
      await write.sent;
      expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
      await write.deliver();
    }
    expect(await downgrade).toEqual({ status: 'held' });
    const reader = await take(other, request(wanted.resource, shared));
    expect(await backend.release(grant, call)).toBe('released');
    expect(await other.release(reader, call)).toBe('released');
  });

  test('list pages through a prefix and nothing else', async () => {
    const backend = etcd.open();
    const grants = await Promise.all(
      Array.from({ length: 260 }, (_, n) => take(backend, request(`job/${n}`))),
    );
    const other = await take(backend, request('joc'));
    const listed: string[] = [];
    for await (const { name } of backend.list('job/', call)) listed.push(name);
    expect(new Set(listed).size).toBe(260);
    expect(listed).toHaveLength(260);
    await Promise.all([...grants, other].map((grant) => backend.release(grant, call)));
  });

  test('closing leaves no session, no lease and a given client open', async () => {
    const client = etcd.client();
    const holder = etcd.open();
    const backend = etcdBackend(client);
    const name = freshName();
    const first = await take(holder, request(name));
    const waiting = request(name);
    await backend.attempt(waiting, true, call);
    const leases = async () => (await client.leaseClient.leaseLeases()).leases.length;
    const during = await leases();
    await backend.close();
    expect(await leases()).toBeLessThan(during);
    // Other tests leave the marks of steals; besides them and that of the layout, the marks are those of sessions.
    const marks = await client.getAll().prefix('locks///').keys();
    expect(marks.filter((key) => !/^locks\/\/\/(stolen\/|layout$)/.test(key))).toEqual([]);
    expect((await holder.inspect(name, call)).waiters).toEqual([]);
    await expect(backend.attempt(request(name), false, call)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await holder.release(first, call);
  });

  test('backends with different prefixes do not see each other', async () => {
    const [a, b] = [etcd.open(), etcd.open(undefined, { prefix: 'other/' })];
    const name = freshName();
    const grants = [await take(a, request(name)), await take(b, request(name))];
    await a.release(grants[0] as never, call);
    await b.release(grants[1] as never, call);
  });
});

describe('a server with a longer minimum lease', () => {
  const etcd = useEtcd({ electionTimeoutMs: 2_000 });

  test('a lease lasts as long as the server says, not as was asked', async () => {
    const backend = etcd.open();
    const grant = await take(backend, request('a', undefined, 1_000));
    expect(grant.validForMs).toBe(3_000);
    expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([
      { status: 'held', validForMs: 3_000 },
    ]);
    await backend.release(grant, call);
  });

  test('a client made with clientOptions() does not refuse its only host after failures, and keeps what the user set', async () => {
    const { hostname, port } = new URL(etcd.hosts());
    const proxy = await startProxy({ host: hostname, port: Number(port) }, { protocol: 'raw' });
    onTestFinished(() => proxy.stop());
    const given = {
      hosts: `http://${proxy.host}:${proxy.port}`,
      grpcOptions: { 'grpc.keepalive_time_ms': 20_000 },
    };
    const options = clientOptions(given);
    expect(options.grpcOptions).toMatchObject({ ...given.grpcOptions, 'grpc.use_local_subchannel_pool': 1 });
    const client = new Etcd3(options);
    onTestFinished(() => client.close());
    proxy.refuse();
    for (let failures = 0; failures < 4; failures += 1)
      await expect(client.get('a').exec()).rejects.toThrowError();
    await proxy.heal();
    await vi.waitFor(() => client.get('a').exec(), { timeout: 3_000, interval: 50 });
  });
});

test('building a backend does no I/O, and a bad option is refused', () => {
  etcdBackend({ hosts: 'http://127.0.0.1:1' });
  etcdBackend(new Etcd3({ hosts: 'http://127.0.0.1:1' }));
  for (const bad of [undefined, null, {}, { hosts: [] }, 'http://127.0.0.1:1'] as never[]) {
    for (const take of [etcdBackend, clientOptions]) {
      expect(() => take(bad)).toThrowError(expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }));
    }
  }
  for (const options of [
    { prefix: '' },
    { prefix: 'locks' },
    { prefix: 'a//' },
    { prefix: '\ud800' },
    { waiterTtlMs: 10 },
    { requestTimeoutMs: Number.NaN },
  ]) {
    expect(() => etcdBackend({ hosts: 'http://127.0.0.1:1' }, options)).toThrowError(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  }
});
