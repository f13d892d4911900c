import { ConnectionQueue, PRIORITIES, type Priority } from '@locks/core/backend';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { createPool, type Pool, type PoolConnection } from 'mysql2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lendingPool } from '../src/connections.ts';
import { theServer, useServer } from './fixture.ts';

useServer();

/** A port of a server that is none of MySQL: each connection to it is given to `onSocket`. */
async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A pool whose connects go to these ports, one after another, and then to the server. */
function poolBy(ports: readonly (number | 'server')[], connectionLimit: number): Pool {
  const left = [...ports];
  const stream = (): Socket => {
    const port = left.shift() ?? 'server';
    return connect(port === 'server' ? theServer().port : port, '127.0.0.1');
  };
  const pool = createPool({ uri: theServer().url, connectionLimit, stream });
  // Not waited for: connects that hang would hold it up.
  onTestFinished(() => pool.end(() => undefined));
  return pool;
}

function request(queue: ConnectionQueue<PoolConnection>, priority: Priority) {
  let withdraw = (): void => undefined;
  const connection = new Promise<PoolConnection>((resolve, fail) => {
    const serve = (lent: PoolConnection): boolean => {
      resolve(lent);
      return true;
    };
    withdraw = queue.add({ priority, serve, fail });
  });
  connection.catch(() => undefined);
  return { connection, withdraw };
}

describe('the queue in front of a pool', { timeout: 5_000 }, () => {
  it('asks for a connection though a connect for a request that was withdrawn hangs', async () => {
    const silent = await listen(() => undefined);
    const pool = poolBy([silent], 2);
    const queue = new ConnectionQueue(lendingPool(() => pool));
    request(queue, PRIORITIES.acquire).withdraw();
    const connection = await request(queue, PRIORITIES.holder).connection;
    connection.release();
    queue.returned();
  });

  it('gives a connection that came back to a request whose connect hangs', async () => {
    const silent = await listen(() => undefined);
    const pool = poolBy(['server', silent], 2);
    const queue = new ConnectionQueue(lendingPool(() => pool));
    const first = await request(queue, PRIORITIES.holder).connection;
    const second = request(queue, PRIORITIES.holder);
    first.release();
    queue.returned();
    expect(await second.connection).toBe(first);
    first.release();
    queue.returned();
    const third = await request(queue, PRIORITIES.holder).connection;
    expect(third).toBe(first);
    third.release();
    queue.returned();
  });

  it('fails every request when no connect succeeds, and asks again for the next one', async () => {
    const cutting = await listen((socket) => socket.resetAndDestroy());
    const pool = poolBy(
      Array.from({ length: 20 }, () => cutting),
      3,
    );
    const queue = new ConnectionQueue(lendingPool(() => pool));
    const requests = Array.from({ length: 20 }, (_, at) =>
      request(queue, at % 2 === 0 ? PRIORITIES.acquire : PRIORITIES.holder),
    );
    const outcomes = await Promise.allSettled(requests.map(({ connection }) => connection));
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    (await request(queue, PRIORITIES.acquire).connection).release();
    queue.returned();
  });
});
