import type { Grant } from '@locks/core/backend';
import type { Etcd3 } from 'etcd3';
import { describe, expect, test, vi } from 'vitest';
import {
  call,
  Counted,
  deferred,
  freshName,
  grants,
  holdBack,
  interceptKeepAlives,
  request,
  sendTwice,
  take,
  useEtcd,
} from './fixture.ts';

describe('a renewal with another ttl', () => {
  const etcd = useEtcd();
  const leaseOf = async (name: string): Promise<string | undefined> =>
    (await etcd.client().getAll().prefix(`locks//${name}/`).exec()).kvs[0]?.lease;
  const untilEnded = async (lease: string | undefined): Promise<void> => {
    const { leaseClient } = etcd.client();
    await vi.waitFor(async () => {
      expect(Number((await leaseClient.leaseTimeToLive({ ID: lease as string })).TTL)).toBe(-1);
    }, 5_000);
  };

  test('keeps the lock when its answer is lost and it is sent again', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    const before = await leaseOf(wanted.resource);
    sendTwice(client, grants(wanted));
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([
      { status: 'held', validForMs: 60_000 },
    ]);
    await untilEnded(before);
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([
      { status: 'held', validForMs: 60_000 },
    ]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('tries another lease, and ends the first, when something else was written meanwhile', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    const before = await leaseOf(wanted.resource);
    const put = holdBack(client, grants(wanted));
    const renewal = backend.renew([{ grant, ttlMs: 60_000 }], call);
    await put.sent;
    const { leases } = await client.leaseClient.leaseLeases();
    await backend.downgrade(grant, call);
    await put.deliver();
    expect(await renewal).toEqual([{ status: 'held', validForMs: 60_000 }]);
    expect(await leaseOf(wanted.resource)).not.toBe(before);
    await vi.waitFor(async () => {
      expect((await client.leaseClient.leaseLeases()).leases).toHaveLength(leases.length - 1);
    }, 5_000);
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('is not undone by an earlier renewal whose keep-alive comes late', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    const before = await leaseOf(wanted.resource);
    const keepAlive = deferred<() => void>();
    let sends = 0;
    interceptKeepAlives(client, {
      write: (send) => {
        sends += 1;
        if (sends === 1) keepAlive.resolve(send);
        else send();
      },
    });
    const reads = vi.spyOn(client.kv, 'txn');
    const earlier = backend.renew([{ grant, ttlMs: 20_000 }], call);
    const deliver = await keepAlive.promise;
    await reads.mock.results[0]?.value;
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    await untilEnded(before);
    deliver();
    // It counts for no more than it asked for.
    expect(await earlier).toEqual([{ status: 'held', validForMs: 20_000 }]);
    expect(grant.lost?.aborted).toBe(false);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('may come with others at the same time: each is answered, and one of them stands', async () => {
    const backend = etcd.open();
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    const before = await etcd.client().leaseClient.leaseLeases();
    const ttls = [30_000, 20_000, 5_000, 40_000, 5_000, 60_000];
    const renewalStatuses = await Promise.all(ttls.map((ttlMs) => backend.renew([{ grant, ttlMs }], call)));
    expect(renewalStatuses.flat().map(({ status }) => status)).toEqual(ttls.map(() => 'held'));
    const { leaseClient } = etcd.client();
    const { grantedTTL } = await leaseClient.leaseTimeToLive({
      ID: (await leaseOf(wanted.resource)) as string,
    });
    expect(ttls).toContain(1_000 * Number(grantedTTL));
    await vi.waitFor(async () => {
      expect((await leaseClient.leaseLeases()).leases).toHaveLength(before.leases.length);
    }, 5_000);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('is not undone by another one that sees what it wrote before its answer comes', async () => {
    const client = etcd.client();
    const backend = etcd.open(client);
    const wanted = request(freshName(), undefined, 20_000);
    const grant = await take(backend, wanted);
    const before = await leaseOf(wanted.resource);
    const written = deferred<void>();
    const answer = deferred<void>();
    const send = client.kv.txn.bind(client.kv);
    client.kv.txn = async (sent, options) => {
      const response = await send(sent, options);
      if (!grants(wanted)(sent)) return response;
      client.kv.txn = send;
      written.resolve();
      await answer.promise;
      return response;
    };
    const first = backend.renew([{ grant, ttlMs: 60_000 }], call);
    await written.promise;
    const second = await backend.renew([{ grant, ttlMs: 60_000 }], call);
    answer.resolve();
    const renewalStatuses = [second, await first].flat();
    expect(renewalStatuses).toEqual([
      { status: 'held', validForMs: 60_000 },
      { status: 'held', validForMs: 60_000 },
    ]);
    await untilEnded(before);
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    expect(await backend.release(grant, call)).toBe('released');
  });
});

/** A leader that was replaced while it was paused may not know a lease that its successor granted. */
describe('an earlier leader that knows nothing of the lease', () => {
  const etcd = useEtcd();
  const answerOnce = (client: Etcd3): void => {
    let told = false;
    interceptKeepAlives(client, {
      answered: (answer) => {
        const { header } = answer;
        const stale = !told;
        told = true;
        return stale ? { ...answer, TTL: '0', header: { ...header, raft_term: '0' } } : answer;
      },
    });
  };

  test('does not end a hold', async () => {
    const client = etcd.client();
    answerOnce(client);
    const backend = etcd.open(client);
    const grant = await take(backend, request(freshName()));
    expect(await backend.renew([{ grant, ttlMs: 20_000 }], call)).toMatchObject([{ status: 'unknown' }]);
    expect(grant.lost?.aborted).toBe(false);
    expect(await backend.renew([{ grant, ttlMs: 20_000 }], call)).toMatchObject([{ status: 'held' }]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('is asked no more about a lease that is used again', async () => {
    const counted = new Counted(etcd.client());
    answerOnce(counted.client);
    const backend = etcd.open(counted.client);
    await backend.release(await take(backend, request(freshName())), call);
    counted.take();
    const grant = await take(backend, request(freshName()));
    expect(counted.take()).toEqual({ txn: 1 });
    expect(await backend.release(grant, call)).toBe('released');
  });
});

describe('a renewal for another instance', () => {
  const etcd = useEtcd();
  const copyOf = ({ request, fencingToken, countedFrom }: Grant): Grant =>
    structuredClone({ request, countedFrom, ...(fencingToken !== undefined && { fencingToken }) });

  test('with another ttl moves the mark of a steal with the hold', async () => {
    const wanted = { ...request('a-stolen-one'), steal: true as const };
    const grant = await take(etcd.open(), wanted);
    const other = etcd.open();
    expect(await other.renew([{ grant: copyOf(grant), ttlMs: 60_000 }], call)).toEqual([
      { status: 'held', validForMs: 60_000 },
    ]);
    const { kvs } = await etcd.client().getAll().prefix('locks//').exec();
    const leases = kvs.filter(({ key }) => key.includes(wanted.resource)).map(({ lease }) => lease);
    expect(leases).toHaveLength(2);
    expect(new Set(leases).size).toBe(1);
  });

  test('gives the hold one lease for each ttl', async () => {
    const backend = etcd.open();
    const grant = copyOf(await take(backend, request(freshName())));
    const counted = new Counted(etcd.client());
    const other = etcd.open(counted.client);
    const renew = () => other.renew([{ grant, ttlMs: 60_000 }], call);
    for (let round = 0; round < 3; round += 1)
      expect(await renew()).toEqual([{ status: 'held', validForMs: 60_000 }]);
    expect(counted.take()).toMatchObject({ leaseGrant: 1 });
    expect(await backend.release(await take(backend, grant.request), call)).toBe('released');
    expect(await renew()).toEqual([{ status: 'lost', reason: 'force-released' }]);
  });

  test('reports no loss where that instance moved the hold to another lease at the same time', async () => {
    const backend = etcd.open();
    const grant = await take(backend, request(freshName()));
    const client = etcd.client();
    const keepAlive = deferred<() => void>();
    interceptKeepAlives(client, { write: (send) => keepAlive.resolve(send) });
    const other = etcd.open(client);
    const renewal = other.renew([{ grant: copyOf(grant), ttlMs: 20_000 }], call);
    const deliver = await keepAlive.promise;
    const before = await etcd.client().leaseClient.leaseLeases();
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    await vi.waitFor(async () => {
      const { leases } = await etcd.client().leaseClient.leaseLeases();
      expect(leases).toHaveLength(before.leases.length);
    }, 5_000);
    deliver();
    expect(await renewal).toMatchObject([{ status: 'unknown' }]);
    expect(await backend.release(grant, call)).toBe('released');
  });

  test('keeps the hold known to that instance, which hears of its end', { timeout: 30_000 }, async () => {
    const backend = etcd.open();
    const grant = await take(backend, request(freshName(), undefined, 2_000));
    const other = etcd.open();
    const copy = copyOf(grant);
    const end = performance.now() + 11_000;
    while (performance.now() < end) {
      expect(await other.renew([{ grant: copy, ttlMs: 2_000 }], call)).toMatchObject([{ status: 'held' }]);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    await other.forceRelease(grant.request.resource, undefined, call);
    await vi.waitFor(() => expect(grant.lost?.aborted).toBe(true), 2_000);
  });
});
