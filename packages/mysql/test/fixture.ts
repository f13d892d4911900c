import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core/backend';
import { type MariadbServer, startMariadb } from '@locks/test-servers';
import { createPool, type Pool, type PoolOptions } from 'mysql2';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { Connections } from '../src/connections.ts';
import { type MysqlBackendOptions, mysqlBackend, type MysqlPool } from '../src/index.ts';
import { MysqlStatements } from '../src/mysql-statements.ts';
import { MysqlTable } from '../src/mysql-table.ts';
import { Schema } from '../src/schema.ts';
import { tablesOf } from '../src/tables.ts';

export const call: Call = { now: () => performance.now(), deadline: Infinity };

export function callFor(ms: number): Call {
  return { now: call.now, deadline: performance.now() + ms };
}

let server: MariadbServer | undefined;
let prefixes = 0;

/** One server for the tests of a file; each test has tables of its own. */
export function useServer(): void {
  beforeAll(async () => {
    server = await startMariadb();
  });
  afterAll(() => server?.stop());
}

export function theServer(): MariadbServer {
  if (server === undefined) throw new Error('call useServer() first');
  return server;
}

/** A prefix that no other test uses. */
export function freshPrefix(): string {
  prefixes += 1;
  return `t${prefixes}_`;
}

/** A pool as a user would make it; `onConnect` is sent on each of its connections first. */
export function openPool(options: PoolOptions = {}, onConnect?: string): Pool {
  const pool = createPool({ uri: theServer().url, ...options });
  if (onConnect !== undefined) pool.on('connection', (connection) => void connection.query(onConnect));
  onTestFinished(() => pool.promise().end());
  return pool;
}

interface Opened extends MysqlBackendOptions {
  readonly pool?: MysqlPool;
  readonly url?: string;
}

export function open({ pool, url, ...options }: Opened & { readonly tablePrefix: string }) {
  const backend = mysqlBackend(pool ?? url ?? theServer().url, options);
  onTestFinished(() => backend.close());
  return backend;
}

/** The tables, without a backend: it sweeps them only after a while. */
export function tableOf(tablePrefix: string): MysqlTable {
  const pool = openPool();
  const connections = new Connections(() => pool, 5_000);
  const statements = new MysqlStatements(tablesOf(tablePrefix, undefined));
  const schema = new Schema(connections, statements, true, 5_000, connections);
  return new MysqlTable({ connections, statements, schema }, 800, pool);
}

let ids = 0;

export function request(resource: string, more: Partial<AcquireRequest> = {}): AcquireRequest {
  ids += 1;
  const acquisitionId = `${process.pid}-${ids}`;
  return { resource, acquisitionId, mode: { kind: 'exclusive' }, ttlMs: 10_000, ...more };
}

/** One attempt that must succeed. */
export async function take(backend: LockBackend, wanted: AcquireRequest): Promise<Grant> {
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(`${wanted.resource} is ${attempt.status}`);
  return attempt.grant;
}

/** What core does: attempt, wait, attempt again. */
export async function acquire(
  backend: LockBackend,
  wanted: AcquireRequest,
  within: Call = callFor(10_000),
): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(wanted, true, within);
    if (attempt.status === 'granted') return attempt.grant;
    if (attempt.status === 'full') throw Object.assign(new Error('the queue is full'), { attempt });
    const grant = await backend.awaitTurn?.(wanted, within);
    if (grant !== undefined) return grant;
    if (within.now() >= within.deadline) throw new Error(`${wanted.acquisitionId} waited in vain`);
  }
}

/** Runs SQL as an administrator, on a connection of its own. */
export async function sql(text: string): Promise<RowDataPacket[]> {
  const connection = await createConnection(theServer().urlOf('admin'));
  try {
    const [rows] = await connection.query<RowDataPacket[]>(text);
    return rows;
  } finally {
    connection.destroy();
  }
}

/** How many statements clients have sent so far, this question not counted. */
export async function statementsSoFar(): Promise<number> {
  const [row] = await sql("SHOW GLOBAL STATUS LIKE 'Questions'");
  questions += 1;
  return Number(row?.['Value']) - questions;
}

let questions = 0;

/** Polls until `check` gives something true. */
export async function until<T>(check: () => T | Promise<T>, withinMs = 10_000): Promise<NonNullable<T>> {
  const end = performance.now() + withinMs;
  for (;;) {
    const result = await check();
    if (result) return result;
    if (performance.now() > end) throw new Error(`not so within ${withinMs} ms: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
