import { subscribe } from 'node:diagnostics_channel';
import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { type NodeZooKeeperClient, zookeeperBackend } from '@locks/zookeeper';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { childrenOf, withAdmin } from '../src/administration/zookeeper.ts';
import { failure, untilWaiting, watched } from '../src/fault-lab/observe.ts';
import Lab, { parentOf, untilQueued, countTraffic, type Traffic } from './lab.ts';

let server: ZooKeeperServer;

const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

test.concurrent('the reply to a create is lost: its node is adopted, and there is one only', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const locks = lab.locks(proxy, { sessionTimeoutMs: 8_000 });
  // The session, and the parent.
  await (await locks.lock('lost-create').acquire()).release();
  proxy.blackhole({ direction: 'toClient' });
  const acquiring = watched(locks.lock('lost-create').acquire({ waitMs: 20_000 }));
  const [node] = await untilQueued(server.address, 'lost-create', 1);
  expect(acquiring.settled).toBe(false);
  await proxy.heal();
  const lease = await acquiring.work;
  expect(await childrenOf(server.address, parentOf('lost-create'))).toEqual([node]);
  expect(node).toContain(lease.acquisitionId);
  const { holders } = await lab.locks(server).inspect('lost-create');
  expect(holders.map(({ fencingToken }) => fencingToken)).toEqual([lease.fencingToken]);
  await lease.release();
  expect(await childrenOf(server.address, parentOf('lost-create'))).toEqual([]);
});

test.concurrent('after a lost reply a node of another session is not adopted, though it has the id', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const backend = zookeeperBackend(`${proxy.host}:${proxy.port}`, { sessionTimeoutMs: 8_000 });
  const request = {
    resource: 'adopted',
    acquisitionId: 'the-id',
    mode: { kind: 'exclusive' },
    ttlMs: 30_000,
  } as const;
  // The layout of the store is known before the network fails.
  const first = await backend.attempt(
    { ...request, resource: 'before', acquisitionId: 'first' },
    false,
    call,
  );
  if (first.status === 'granted') await backend.release(first.grant, call);
  await withAdmin(server.address, async (admin) => {
    const made = (path: string, mode: number) =>
      new Promise<unknown>((resolve) => admin.create(path, Buffer.alloc(0), mode, resolve));
    await made('/locks', 0);
    await made(parentOf('adopted'), 0);
    proxy.blackhole({ direction: 'toClient' });
    const unanswered = backend.attempt(request, true, call).catch((error: unknown) => error);
    await untilQueued(server.address, 'adopted', 1);
    // As one of an earlier session of the same client, which the server has not ended yet.
    await made(`${parentOf('adopted')}/x.the-id.-000000001`, 1);
    await proxy.heal();
    expect(await unanswered).toMatchObject({ code: 'CONNECTION_LOSS' });
    const attempt = await backend.attempt(request, true, call);
    expect(attempt.status).toBe('granted');
    const nodes = await untilQueued(server.address, 'adopted', 1);
    expect(nodes[0]).not.toContain('-000000001');
    if (attempt.status === 'granted') expect(await backend.release(attempt.grant, call)).toBe('released');
  });
  await backend.close();
});

test.concurrent('an attempt that is given up while it still connects makes no node afterwards', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const traffic: Traffic = { requests: new Map(), events: 0 };
  const backend = zookeeperBackend(`${proxy.host}:${proxy.port}`, {
    setUpClient: (client) => countTraffic(client, traffic),
  });
  const request = {
    resource: 'connecting',
    acquisitionId: 'given-up',
    mode: { kind: 'exclusive' },
    ttlMs: 30_000,
  } as const;
  proxy.stall();
  const attempt = backend.attempt(request, true, call);
  await waitUntil(() => proxy.connections().length > 0, { what: 'the client to connect' });
  await backend.abandon(request, call);
  await proxy.heal();
  expect(await attempt).toEqual({ status: 'contended' });
  expect(traffic.requests.get('create') ?? 0).toBe(0);
  await backend.close();
});

test.concurrent('the reply to a create is lost, and the caller gives up: no orphan stays', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const locks = lab.locks(proxy, { sessionTimeoutMs: 8_000 });
  await (await locks.lock('orphan').acquire()).release();
  proxy.blackhole({ direction: 'toClient' });
  const hasGivenUp = new Promise<void>((resolve) => {
    subscribe('locks:abandon-failed', (event) => {
      if ((event as { name: string }).name === 'orphan') resolve();
    });
  });
  const fails = failure(locks.lock('orphan').acquire({ waitMs: 300 }));
  await untilQueued(server.address, 'orphan', 1);
  expect((await fails).code).toBe('LOCK_BACKEND');
  // Core gives up on the abandon too.
  await hasGivenUp;
  await proxy.heal();
  await untilQueued(server.address, 'orphan', 0);
  const lease = await lab.locks(server).lock('orphan').tryAcquire();
  expect(lease).toBeDefined();
  await lease?.release();
});

test.concurrent('the reply to a release is lost: it is released once, and the next one gets it', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const lease = await lab.locks(proxy, { sessionTimeoutMs: 8_000 }).lock('lost-release').acquire();
  const others = lab.locks(server);
  const waiting = others.lock('lost-release').acquire({ waitMs: 20_000 });
  await untilWaiting(others, 'lost-release');
  proxy.blackhole({ direction: 'toClient' });
  const releasing = lease.release();
  const next = await waiting;
  await proxy.heal();
  await releasing;
  next.assertValid();
  await next.release();
});

/** Repeats it until there is a connection again. */
async function afterReconnect(work: () => Promise<unknown>): Promise<void> {
  await waitUntil(() => work().then(() => true), { what: 'the connection to be back' });
}

describe.concurrent('a downgrade whose replies are lost', () => {
  /** A hold that was turned into a shared one, and does not know it. */
  async function unanswered(lab: Lab, resource: string, { guarded }: { readonly guarded: boolean }) {
    const proxy = await lab.proxy(server);
    const backend = zookeeperBackend(`${proxy.host}:${proxy.port}`, { sessionTimeoutMs: 8_000 });
    lab.defer(() => backend.close());
    const mode = { kind: 'exclusive' } as const;
    const attempt = await backend.attempt(
      { resource, acquisitionId: 'downgraded', mode, ttlMs: 30_000 },
      false,
      call,
    );
    if (attempt.status !== 'granted') return expect.fail(`it is ${attempt.status}`);
    const { grant } = attempt;
    if (guarded) await backend.renew([{ grant, ttlMs: 30_000 }], call);
    proxy.blackhole({ direction: 'toClient' });
    const downgrade = backend.downgrade?.(grant, call).catch((error: unknown) => error);
    await waitUntil(
      async () =>
        (await childrenOf(server.address, parentOf(resource))).every((name) => name.startsWith('s.')),
      { what: 'the downgrade' },
    );
    await proxy.heal();
    expect(await downgrade).toMatchObject({ code: 'CONNECTION_LOSS' });
    return { backend, grant };
  }

  test('the release deletes the node that it made', async () => {
    await using lab = new Lab();
    const { backend, grant } = await unanswered(lab, 'unanswered-1', { guarded: false });
    await afterReconnect(() => backend.release(grant, call));
    expect(await childrenOf(server.address, parentOf('unanswered-1'))).toEqual([]);
  });

  test('the hold goes on as a shared one, whose deletion is reported', async () => {
    await using lab = new Lab();
    const { backend, grant } = await unanswered(lab, 'unanswered-2', { guarded: true });
    // Answered after what the reconnect itself asks for, and after what follows from that.
    for (let times = 0; times < 3; times += 1)
      await afterReconnect(() => backend.inspect('unanswered-2', call));
    expect(grant.lost?.aborted).toBe(false);
    const others = lab.locks(server);
    const reader = await others.readWriteLock('unanswered-2').read.acquire({ waitMs: 5_000 });
    expect(await others.readWriteLock('unanswered-2').write.tryAcquire()).toBeUndefined();
    expect(await backend.downgrade?.(grant, call)).toEqual({ status: 'held' });
    await others.forceRelease('unanswered-2', { acquisitionId: 'downgraded' });
    await waitUntil(() => grant.lost?.aborted, { what: 'the loss to be reported' });
    expect(grant.lost?.reason).toBe('force-released');
    await reader.release();
  });

  test('nothing stays where it was not done', async () => {
    await using lab = new Lab();
    const lossy = (client: NodeZooKeeperClient): void => {
      const transaction = client.transaction.bind(client);
      client.transaction = () => {
        client.transaction = transaction;
        const never = transaction();
        never.commit = (done) => done(Object.assign(new Error('CONNECTION_LOSS'), { code: -4 }));
        return never;
      };
    };
    const backend = zookeeperBackend(server.address, { setUpClient: lossy });
    lab.defer(() => backend.close());
    const attempt = await backend.attempt(
      { resource: 'half', acquisitionId: 'half', mode: { kind: 'exclusive' }, ttlMs: 30_000 },
      false,
      call,
    );
    if (attempt.status !== 'granted') return expect.fail(`it is ${attempt.status}`);
    await expect(backend.downgrade?.(attempt.grant, call)).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    expect(await childrenOf(server.address, parentOf('half'))).toHaveLength(1);
    expect(await backend.release(attempt.grant, call)).toBe('released');
    expect(await childrenOf(server.address, parentOf('half'))).toEqual([]);
  });
});
