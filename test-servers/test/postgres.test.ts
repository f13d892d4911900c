import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isFree, startPgbouncer, startPostgres, waitUntil } from '../src/index.ts';

describe('a private PostgreSQL', { timeout: 60_000 }, () => {
  it('answers, stands still, is killed, comes back with its data, and leaves nothing behind', async () => {
    const server = await startPostgres({ settings: { statement_timeout: '5s' } });
    const { dir, port } = server;
    expect(await server.query("SELECT 1 AS one, NULL AS none, 'ä' AS text; SHOW statement_timeout")).toEqual([
      { one: '1', none: null, text: 'ä' },
      { statement_timeout: '5s' },
    ]);
    await expect(server.query('SELECT nonsense')).rejects.toMatchObject({ code: '42703' });
    await server.query('CREATE TABLE kept AS SELECT 7 AS number');

    const slow = server.query('SELECT pg_sleep(0.2)');
    await waitUntil(
      async () =>
        (await server.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%sleep(0.2)'")).length > 0,
      { what: 'a statement that runs' },
    );
    await server.pause();
    await expect(server.query('SELECT 1', { timeoutMs: 200 })).rejects.toThrow(/did not answer/);
    server.resume();
    await slow;

    const idle = server.query('SELECT pg_sleep(10)').catch((error: { code?: string }) => error.code);
    await waitUntil(async () => (await server.terminate()) > 0, { what: 'a connection to end' });
    // A connection that is reset may lose the server's last message.
    expect(['57P01', 'ECONNRESET']).toContain(await idle);

    await server.pause();
    await server.kill();
    expect(await isFree(port)).toBe(true);
    await server.restart();
    expect(await server.query('SELECT number FROM kept')).toEqual([{ number: '7' }]);
    await server.stop();
    await server.stop();
    expect(existsSync(dir)).toBe(false);
  });

  it('stands behind a PgBouncer that lends connections for one transaction', async () => {
    await using server = await startPostgres();
    await using bouncer = await startPgbouncer(server, { poolSize: 1 });
    const { simpleQuery } = await import('../src/postgres/simple-query.ts');
    const ask = async () => (await simpleQuery(bouncer, 'SELECT pg_backend_pid() AS pid'))[0]?.['pid'];
    expect(await ask()).toBe(await ask());
  });
});
