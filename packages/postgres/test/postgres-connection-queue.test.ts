import { type PostgresServer, startPostgres, startProxy, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PostgresConnectionQueue, priorities, type Priority } from '../src/pool/postgres-connection-queue.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

/** Resolves to the function that returns the connection. */
function connectionOf(
  queue: PostgresConnectionQueue,
  priority: Priority = priorities.acquire,
): Promise<(error?: Error) => void> {
  return new Promise((resolve, fail) => {
    queue.add({
      priority,
      fail,
      serve: (_, release) => {
        resolve(release);
        return true;
      },
    });
  });
}

describe('the queue in front of a pool', () => {
  it('serves a request with a connection that becomes free while a new one hangs', async () => {
    await using proxy = await startProxy(server, { protocol: 'raw' });
    const pool = new pg.Pool({ connectionString: `postgres://postgres@127.0.0.1:${proxy.port}/postgres` });
    pool.on('error', () => undefined);
    const queue = new PostgresConnectionQueue(pool);
    const returnConnection = await connectionOf(queue);
    const made = proxy.connections();
    proxy.blackhole({ only: (connection) => !made.includes(connection) });
    const waiting = connectionOf(queue, priorities.holder);
    returnConnection();
    (await waiting)();
    // The connection is idle now, and the next request uses it.
    (await connectionOf(queue))();
    const isCut = async (): Promise<boolean> => {
      proxy.cut();
      return pool.totalCount === 0;
    };
    await waitUntil(isCut, { what: 'the connections to end' });
    await pool.end();
  });

  it('fails the least urgent request when a connection cannot be made', async () => {
    await using proxy = await startProxy(server, { protocol: 'raw' });
    const pool = new pg.Pool({
      connectionString: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
      max: 1,
    });
    const queue = new PostgresConnectionQueue(pool);
    proxy.blackhole();
    const failed: Priority[] = [];
    const requests = [priorities.holder, priorities.abandon, priorities.acquire].map((priority) =>
      connectionOf(queue, priority).catch(() => void failed.push(priority)),
    );
    while (failed.length < requests.length) {
      proxy.cut();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(failed).toEqual([priorities.acquire, priorities.abandon, priorities.holder]);
    await pool.end();
  });

  it('asks for another connection as soon as a broken one is returned', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const queue = new PostgresConnectionQueue(pool);
    const returnConnection = await connectionOf(queue);
    const waiting = connectionOf(queue);
    returnConnection(new Error('broken'));
    (await waiting)();
    await pool.end();
  });
});
