import { ConnectionQueue, PRIORITIES, type Priority } from '@locks/core/backend';
import { type PostgresServer, startPostgres, startProxy, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { PooledConnection } from '../src/driver/postgres-driver.ts';
import { lendingPool } from '../src/pg/pg-driver.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

/** Resolves to the function that returns the connection. */
function connectionOf(
  queue: ConnectionQueue<PooledConnection>,
  priority: Priority = PRIORITIES.acquire,
): Promise<(error?: Error) => void> {
  return new Promise((resolve, fail) => {
    queue.add({
      priority,
      fail,
      serve: (connection) => {
        resolve((error) => {
          connection.release(error);
          queue.returned();
        });
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
    const queue = new ConnectionQueue(lendingPool(pool));
    const returnConnection = await connectionOf(queue);
    const made = proxy.connections();
    proxy.blackhole({ only: (connection) => !made.includes(connection) });
    const waiting = connectionOf(queue, PRIORITIES.holder);
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

  it('asks for another connection as soon as a broken one is returned', async () => {
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    const queue = new ConnectionQueue(lendingPool(pool));
    const returnConnection = await connectionOf(queue);
    const waiting = connectionOf(queue);
    returnConnection(new Error('broken'));
    (await waiting)();
    await pool.end();
  });
});
