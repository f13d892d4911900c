import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createLocks, type LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import {
  type PostgresServer,
  startPgbouncer,
  startPostgres,
  startProxy,
  waitUntil,
} from '@locks/test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Statement, TextResult } from '../src/driver/postgres-driver.ts';
import { postgresLeaseBackend as leaseOnPg } from '../src/index.ts';
import { postgresAdvisoryBackend, postgresLeaseBackend } from '../src/postgres-js/index.ts';
import { PostgresJsConnection } from '../src/postgres-js/postgres-js-connection.ts';
import { selfSigned } from './self-signed.ts';

let server: PostgresServer;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await stack.disposeAsync();
  await server.stop();
});

function open(url = server.url, options: postgres.Options<Record<string, never>> = {}): postgres.Sql {
  const sql = postgres(url, { onnotice: () => undefined, ...options });
  stack.defer(() => sql.end({ timeout: 0 }));
  return sql as unknown as postgres.Sql;
}

function managed(backend: LockBackend): LockManager {
  const locks = createLocks(backend);
  stack.defer(() => locks.close());
  return locks as LockManager;
}

async function connect(sql: postgres.Sql): Promise<PostgresJsConnection> {
  const connection = new PostgresJsConnection(sql.options, 'test');
  stack.defer(() => connection.cut());
  await connection.connect();
  return connection;
}

function ask(connection: PostgresJsConnection, statement: Statement): Promise<TextResult> {
  return new Promise((resolve, reject) => {
    connection.send(statement, (error, result) => (result === undefined ? reject(error) : resolve(result)));
  });
}

describe('a connection of postgres.js', () => {
  it('sends values of every kind and reads texts, whatever types and transforms the application has', async () => {
    const own = open(server.url, {
      transform: { ...postgres.camel, value: { from: () => 'changed' }, undefined: null },
      types: {
        bigint: postgres.BigInt,
        text: { to: 25, from: [25], parse: () => 'x', serialize: () => 'y' },
      },
    } as never);
    const connection = await connect(own);
    const text = `SELECT $1::text, encode($2::bytea, 'hex'), $3::int8, $4::text AS some_column, $5::int4, $6::bool,
      array_to_string($7::text[], '|', 'null'), encode(($8::bytea[])[1], 'hex'), array_length($9::int4[], 1)`;
    const bytes = Buffer.from([0, 255, 39, 92]);
    for (const label of ['ä€😀', '', '"\\{},', 'x'.repeat(70_000)]) {
      const values = [label, bytes, 2n ** 62n, null, -1, true, [label, null, 'NULL'], [bytes], [1, 2, 3]];
      for (const name of [undefined, 'prepared']) {
        const { rows, count } = await ask(connection, { ...(name !== undefined && { name }), text, values });
        expect(rows).toEqual([
          [label, '00ff275c', String(2n ** 62n), null, '-1', 't', `${label}|null|NULL`, '00ff275c', '3'],
        ]);
        expect(count).toBe(1);
      }
    }
  });

  it('knows its process, and the SQL state of an error', async () => {
    const connection = await connect(open());
    const { rows } = await ask(connection, { text: 'SELECT pg_backend_pid(); SELECT 2' }).then(() =>
      ask(connection, { text: 'SELECT pg_backend_pid()' }),
    );
    expect(Number(rows[0]?.[0])).toBe(connection.processId);
    await expect(ask(connection, { text: 'SELECT FROM nowhere' })).rejects.toMatchObject({
      code: '42P01',
      severity: 'ERROR',
    });
  });

  it('is not made again after its end', async () => {
    const twice = { host: [server.host, server.host], port: [server.port, server.port] };
    const connection = await connect(open(server.url, twice as never));
    const ended = new Promise<Error>((resolve) => connection.onEnd(resolve));
    const hanging = ask(connection, { text: 'SELECT pg_sleep(60)' });
    const waiting = ask(connection, { text: 'SELECT 1' });
    connection.cut();
    await expect(hanging).rejects.toThrow();
    await expect(waiting).rejects.toThrow();
    await ended;
    await expect(ask(connection, { text: 'SELECT 1' })).rejects.toThrow();
  });

  it('tries the hosts one after the other', async () => {
    await using proxy = await startProxy(server, { protocol: 'raw' });
    const silent = proxy.port;
    await proxy.stop();
    const sql = open(server.url, { host: ['127.0.0.1', server.host], port: [silent, server.port] } as never);
    await (await connect(sql)).end();
    const none = new PostgresJsConnection({ ...sql.options, host: ['127.0.0.1'], port: [silent] }, 'test');
    await expect(none.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('tells that a host accepts and closes, and names no option that was not set', async () => {
    const balancer = createServer((socket) => socket.destroy());
    await once(balancer.listen(0, '127.0.0.1'), 'listening');
    stack.defer(() => void balancer.close());
    const { port } = balancer.address() as AddressInfo;
    const options = { host: ['127.0.0.1'], port: [port] } as never;
    const plain = new PostgresJsConnection(open(server.url, options).options, 'test');
    const refused = await plain.connect().catch((error: Error) => error.message);
    expect(refused).toContain('closed by the server, or by a balancer');
    expect(refused).not.toContain('target_session_attrs');
    const asking = { ...(options as object), target_session_attrs: 'primary' } as never;
    const picky = new PostgresJsConnection(open(server.url, asking).options, 'test');
    await expect(picky.connect()).rejects.toThrow('target_session_attrs asks for, primary');
  });

  it('is encrypted as the application asks for it', async () => {
    await using own = await startPostgres();
    const admin = postgres(own.url, { max: 1, onnotice: () => undefined });
    for (const [file, content] of Object.entries({
      'server.key': selfSigned.key,
      'server.crt': selfSigned.certificate,
    }))
      await admin.unsafe(
        `COPY (SELECT unnest(ARRAY[${content
          .split('\n')
          .map((line) => `'${line}'`)
          .join(',')}])) TO PROGRAM 'umask 077; cat > ${file}'`,
      );
    await admin`ALTER SYSTEM SET ssl = on`;
    await admin`SELECT pg_reload_conf()`;
    await waitUntil(async () => (await admin`SHOW ssl`)[0]?.['ssl'] === 'on', {
      what: 'the server to encrypt',
    });
    await admin.end();
    const isEncrypted = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
    const trusting = await connect(open(own.url, { ssl: { ca: selfSigned.certificate } }));
    expect((await ask(trusting, { text: isEncrypted })).rows).toEqual([['t']]);
    const ended = new Promise<Error>((resolve) => trusting.onEnd(resolve));
    trusting.cut();
    await ended;
    const doubting = new PostgresJsConnection(open(own.url, { ssl: 'verify-full' }).options, 'test');
    await expect(doubting.connect()).rejects.toMatchObject({ code: /CERT|SELF_SIGNED/ });
  });
});

describe('locks by postgres.js', () => {
  it('go on while the application uses all its connections, which stay open', async () => {
    const sql = open(server.url, { max: 2 });
    const lease = managed(postgresLeaseBackend(sql, { schema: 'busy' }));
    const advisory = managed(postgresAdvisoryBackend(sql));
    const both = Array.from({ length: 2 }, () =>
      sql.begin(async (tx) => {
        await tx`SELECT 1`;
        await lease.lock('busy').run(() => undefined, { waitMs: 4_000 });
        await advisory.lock('busy').run(() => undefined, { waitMs: 4_000 });
      }),
    );
    await Promise.all(both);
    await lease.close();
    await advisory.close();
    expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
  });

  it('replace a connection that does not answer', async () => {
    await using proxy = await startProxy(server, { protocol: 'raw' });
    const sql = open(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`);
    const locks = managed(postgresLeaseBackend(sql, { schema: 'silent' }));
    await locks.lock('silent').run(() => undefined);
    const made = proxy.connections();
    proxy.blackhole({ only: (connection) => made.includes(connection) });
    await expect(locks.lock('silent').acquire({ waitMs: 300 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
    });
    await locks.lock('silent').run(() => undefined, { waitMs: 4_000 });
  });

  it('share one queue with processes that use pg', async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    stack.defer(() => pool.end());
    const all = [
      managed(leaseOnPg(pool, { schema: 'shared' })),
      managed(postgresLeaseBackend(open(), { schema: 'shared' })),
    ];
    const order: number[] = [];
    const held = await all[0]?.lock('shared').acquire();
    const turns: Promise<void>[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      const locks = all[turn % 2] as LockManager;
      turns.push(locks.lock('shared').run(() => void order.push(turn), { waitMs: 10_000 }));
      await waitUntil(async () => (await locks.inspect('shared')).waiters.length === turn + 1, {
        what: 'the waiter to stand in the queue',
      });
    }
    await held?.release();
    await Promise.all(turns);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('work behind PgBouncer in transaction mode, by polling, and refuse advisory locks there', async () => {
    await using pooler = await startPgbouncer(server);
    const sql = open(pooler.url);
    const [one, other] = [0, 1].map(() =>
      managed(postgresLeaseBackend(sql, { schema: 'pooled', listen: false })),
    );
    const held = await one?.lock('pooled').acquire();
    const waiting = other?.lock('pooled').acquire({ waitMs: 10_000 });
    await held?.release();
    await (await waiting)?.release();
    const advisory = managed(postgresAdvisoryBackend(sql));
    await expect(advisory.lock('pooled').acquire()).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });

  it('refuse what is no instance of postgres.js', async () => {
    const sql = open();
    const wrong: unknown[] = [undefined, null, 'postgres://', new pg.Pool(), postgres];
    await sql.begin(async (tx) => void wrong.push(tx));
    const reserved = await sql.reserve();
    reserved.release();
    wrong.push(reserved);
    for (const one of wrong) {
      for (const backend of [postgresLeaseBackend, postgresAdvisoryBackend])
        expect(() => backend(one as postgres.Sql)).toThrow(/sql must be what postgres\(\) .* returns/);
    }
    expect(() => leaseOnPg(sql as unknown as pg.Pool)).toThrow(/@locks\/postgres\/postgres-js/);
  });
});
