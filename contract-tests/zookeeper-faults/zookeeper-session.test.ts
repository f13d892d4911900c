import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  childrenOf,
  connectClient,
  deleteNode,
  endSession,
  sessionOf,
  type Victim,
} from '../src/administration/zookeeper.ts';
import { failure, figure, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab, { countTraffic, parentOf, SESSION_MS, type Traffic, untilQueued } from './lab.ts';

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

test.concurrent('the end of a session ends its leases, and the backend goes on with a new one', async () => {
  await using lab = new Lab();
  const sessions: Victim[] = [];
  const locks = lab.locks(server, { setUpClient: (client) => void sessions.push(sessionOf(client)) });
  const lease = await locks.lock('expired').acquire();
  const lost = lossOf(lease);
  await endSession(server.address, sessions[0] as Victim);
  expect((await lost).reason).toBe('session-lost');
  const again = await locks.lock('expired').acquire({ waitMs: 20_000 });
  expect(sessions.length).toBeGreaterThan(1);
  expect(again.fencingToken).toBeGreaterThan(lease.fencingToken);
  await again.release();
});

test.concurrent('a waiter outlives the end of its session: it waits again, at the end of the queue', async () => {
  await using lab = new Lab();
  const sessions: Victim[] = [];
  const others = lab.locks(server);
  const holder = await others.lock('waiter-expired').acquire();
  const waiting = lab
    .locks(server, { setUpClient: (client) => void sessions.push(sessionOf(client)) })
    .lock('waiter-expired')
    .acquire({ waitMs: 20_000 });
  await untilWaiting(others, 'waiter-expired');
  const before = await childrenOf(server.address, parentOf('waiter-expired'));
  await endSession(server.address, sessions[0] as Victim);
  await waitUntil(
    async () => {
      const nodes = await childrenOf(server.address, parentOf('waiter-expired'));
      return nodes.length === 2 && nodes.some((node) => !before.includes(node));
    },
    { what: 'the waiter to be queued again' },
  );
  await holder.release();
  await (await waiting).release();
});

test.concurrent('a node deleted by hand is reported to its holder within one message', async () => {
  await using lab = new Lab();
  const traffic: Traffic = { requests: new Map(), events: 0 };
  const reads = (): number => traffic.requests.get('getData') ?? 0;
  const locks = lab.locks(server, { setUpClient: (client) => countTraffic(client, traffic) });
  const lease = await locks.lock('deleted').acquire();
  const lost = lossOf(lease);
  const before = reads();
  await waitUntil(async () => reads() > before, { what: 'the own node to be watched' });
  const [node] = await childrenOf(server.address, parentOf('deleted'));
  const deletedAt = performance.now();
  await deleteNode(server.address, `${parentOf('deleted')}/${node}`);
  const { reason, at } = await lost;
  expect(reason).toBe('force-released');
  expect(at - deletedAt).toBeLessThan(1_000);
  figure('own node deleted: reported after', at - deletedAt);
  const other = await locks.lock('deleted').acquire();
  await other.release();
});

test.concurrent('a waiter whose node was deleted by hand waits again', async () => {
  await using lab = new Lab();
  const locks = lab.locks(server);
  const lease = await locks.lock('waiter-deleted').acquire();
  const waiting = lab.locks(server).lock('waiter-deleted').acquire({ waitMs: 20_000 });
  await untilWaiting(locks, 'waiter-deleted');
  const nodes = await childrenOf(server.address, parentOf('waiter-deleted'));
  const node = nodes.find((name) => !name.includes(lease.acquisitionId));
  await deleteNode(server.address, `${parentOf('waiter-deleted')}/${node}`);
  await lease.release();
  await (await waiting).release();
});

test.concurrent('a given client is used and never closed, and the end of its session is reported', async () => {
  await using lab = new Lab();
  const client = await connectClient(server.address, SESSION_MS);
  const locks = lab.with(client);
  const lease = await locks.lock('given').acquire();
  await locks.close();
  expect(client.getState().name).toBe('SYNC_CONNECTED');
  expect(await childrenOf(server.address, parentOf('given'))).toEqual([]);
  expect(() => lease.assertValid()).toThrow();

  const others = lab.with(client);
  const second = await others.lock('given').acquire();
  const lost = lossOf(second);
  await endSession(server.address, sessionOf(client));
  expect((await lost).reason).toBe('session-lost');
  const refused = await failure(others.lock('given').acquire({ waitMs: 5_000 }));
  expect(refused.code).toBe('LOCK_BACKEND');
  expect((refused.cause as { code: string }).code).toBe('AUTH_FAILED');
});

test.concurrent('a new session that a server gives unasked loses all leases of the old one', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const client = await connectClient(`${proxy.host}:${proxy.port}`, 8_000);
  const locks = lab.with(client);
  const lease = await locks.lock('silent').acquire();
  const lost = lossOf(lease);
  // As ClickHouse Keeper does: the client asks for its session, and gets another one.
  const { connectionManager } = client as unknown as {
    connectionManager: { sessionId: Buffer; sessionPassword: Buffer };
  };
  connectionManager.sessionId = Buffer.alloc(8);
  connectionManager.sessionPassword = Buffer.alloc(16);
  proxy.cut();
  expect((await lost).reason).toBe('session-lost');
  const other = await locks.lock('another').acquire({ waitMs: 20_000 });
  await other.release();
  client.close();
});

test.concurrent('a given client that was silent for too long and comes back leaves no node of a lost lease', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const client = await connectClient(`${proxy.host}:${proxy.port}`, 4_000);
  const locks = lab.with(client);
  const lease = await locks.lock('revived').acquire();
  const lost = lossOf(lease);
  proxy.stall({ direction: 'toClient' });
  expect((await lost).reason).toBe('session-lost');
  // Its requests arrived all the while, so the session lives on.
  await untilQueued(server.address, 'revived', 1);
  await proxy.heal();
  const other = await locks.lock('unrelated').acquire({ waitMs: 20_000 });
  await untilQueued(server.address, 'revived', 0);
  await other.release();
  client.close();
});

test.concurrent('a waiter of a given client that was silent for too long leaves no second node in the queue', async () => {
  await using lab = new Lab();
  const proxy = await lab.proxy(server);
  const client = await connectClient(`${proxy.host}:${proxy.port}`, 4_000);
  const locks = lab.with(client);
  const others = lab.locks(server);
  const holder = await others.lock('waits').acquire();
  const waiting = locks.lock('waits').acquire({ waitMs: 60_000 });
  const sequenceOf = (node: string): number => Number(node.split('.')[2]);
  const queued = await untilQueued(server.address, 'waits', 2);
  const first = queued.toSorted((a, b) => sequenceOf(a) - sequenceOf(b)).at(-1);
  expect(first).toBeDefined();
  proxy.stall({ direction: 'toClient' });
  // Two thirds of its time: the session counts as lost here, and lives on at the server.
  await sleep(3_500);
  await proxy.heal();
  // The first request of the new session deletes the node of the old one.
  await waitUntil(
    async () => {
      const nodes = await childrenOf(server.address, parentOf('waits'));
      return nodes.length === 2 && !nodes.includes(first as string);
    },
    { what: 'the waiter to be queued again' },
  );
  await holder.release();
  const lease = await waiting;
  await lease.release();
  await untilQueued(server.address, 'waits', 0);
  await (await others.lock('waits').acquire({ waitMs: 10_000 })).release();
  client.close();
});

test.concurrent('a connect that was given up cuts no later connection', async () => {
  await using lab = new Lab();
  const cuts: unknown[] = [];
  const locks = lab.locks(server, {
    setUpClient(client) {
      const { connectionManager: manager } = client as unknown as {
        connectionManager: { socket: Socket; findNextServer(found: (at: unknown) => void): void };
      };
      const find = manager.findNextServer.bind(manager);
      manager.findNextServer = (found) => {
        manager.findNextServer = find;
        find((at) => {
          found(at);
          // Before it is connected, as where a server says nothing.
          manager.socket.destroy();
        });
      };
      const events = client as unknown as EventEmitter;
      events.once('connected', () => events.on('disconnected', () => cuts.push('cut')));
    },
  });
  const lease = await locks.lock('given up').acquire();
  // The time limit of a connect: the whole session's time, with one server.
  await sleep(SESSION_MS + 500);
  expect(cuts).toEqual([]);
  await lease.release();
});

test.concurrent('tokens rise over the restart of a killed server, also of a resource that was tidied away', async () => {
  await using lab = new Lab();
  const own = await lab.server();
  const first = await lab.locks(own, { idleTtlMs: 100 }).lock('stock').acquire();
  await first.release();
  await own.restart();
  const second = await lab.locks(own).lock('stock').acquire();
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  await second.release();
});
