import { createLocks, type LockManager, type ManagerOptions } from '@locks/core';
import { advisoryKey, postgresAdvisoryBackend } from '@locks/postgres';
import { postgresAdvisoryBackend as byPostgresJs } from '@locks/postgres/postgres-js';
import { type PostgresServer, startPostgres, waitUntil } from '@locks/test-servers';
import postgres from 'postgres';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

/** Whether the tests run by postgres.js, instead of by pg. */
const isPostgresJs = process.env['LOCKS_POSTGRES_DRIVER'] === 'postgres-js';

/** A session lives for this long without an answer, and is reported lost after two thirds of it. */
export const SESSION_MS = 3_000;
/** How long the server waits for the claim of a session that it grants a lock to after a wait. */
export const CLAIM_MS = 2_000;
/** How late this machine may be. */
export const SLACK_MS = 1_500;

export interface LabOptions extends ManagerOptions {
  /** The name of its connections. */
  readonly name?: string;
  readonly maxConnections?: number;
  readonly sessionTimeoutMs?: number;
}

let shared: Promise<PostgresServer> | undefined;
let names = 0;

/** One server for all tests of a file that leave it alone. */
export function sharedServer(): Promise<PostgresServer> {
  shared ??= startPostgres();
  return shared;
}

/** For `afterAll`. */
export async function stopSharedServer(): Promise<void> {
  await (await shared)?.stop();
}

/** A name that no other test uses, good for locks and for connections. */
export function freshName(): string {
  names += 1;
  return `${process.pid}-${names}`;
}

export default class AdvisoryLab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(settings: Readonly<Record<string, string | number>> = {}): Promise<PostgresServer> {
    return this.use(await startPostgres({ settings }));
  }

  locks(at: { readonly host?: string; readonly port: number }, options: LabOptions = {}): LockManager {
    const { host = '127.0.0.1', port } = at;
    const { name = 'test', maxConnections = 4, sessionTimeoutMs = SESSION_MS, ...lockOptions } = options;
    const connectionString = `postgres://postgres@${host}:${port}/postgres?application_name=${encodeURIComponent(name)}`;
    const settings = { maxConnections, sessionTimeoutMs };
    const backend = isPostgresJs
      ? byPostgresJs(postgres(connectionString), settings)
      : postgresAdvisoryBackend(connectionString, settings);
    return this.use(createLocks(backend, lockOptions));
  }
}

/** What the server says of one name: the sessions that have its lock, and those that wait for it. */
export async function onServer(
  server: PostgresServer,
  name: string,
): Promise<{ granted: number; waiting: number }> {
  const bits = BigInt.asUintN(64, advisoryKey(name));
  const rows = await server.query(
    `SELECT count(*) FILTER (WHERE granted) AS granted, count(*) FILTER (WHERE NOT granted) AS waiting
     FROM pg_locks WHERE locktype = 'advisory' AND classid = ${bits >> 32n} AND objid = ${bits & 0xffff_ffffn}`,
  );
  return { granted: Number(rows[0]?.['granted']), waiting: Number(rows[0]?.['waiting']) };
}

/** Resolves when the server has so many requests for a name in its queue. */
export async function untilQueued(server: PostgresServer, name: string, count: number): Promise<void> {
  const queued = async () => (await onServer(server, name)).waiting === count;
  await waitUntil(queued, { what: `${count} requests for ${name} on the server` });
}

/** How many advisory locks the sessions of that name have, or wait for: those of names, not the mark of the layout. */
export async function locksOf(server: PostgresServer, application: string): Promise<number> {
  const rows = await server.query(
    `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'advisory' AND objsubid = 1 AND application_name = '${application}'`,
  );
  return Number(rows[0]?.['count']);
}

/** Resolves when the server knows nothing of a name any more. */
export async function untilFree(server: PostgresServer, name: string, timeoutMs = 3_000): Promise<void> {
  const free = async () => {
    const { granted, waiting } = await onServer(server, name);
    return granted + waiting === 0;
  };
  await waitUntil(free, { what: `the server to forget ${name}`, timeoutMs });
}
