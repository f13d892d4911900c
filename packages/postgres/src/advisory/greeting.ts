import { LockError } from '@locks/core';
import type pg from 'pg';
import { type Moment, thisMoment } from './life-sign.ts';

/** The first one with `idle_session_timeout`, which bounds what a frozen client costs the others. */
const OLDEST_VERSION = 140_000;

/** A server that follows another keeps advisory locks of its own, which exclude nobody elsewhere. */
export class StandbyError extends Error {}

export interface Greeting {
  readonly pid: number;
  /** Of the database: advisory locks belong to one. */
  readonly database: string;
  /** Before the settings were sent. */
  readonly at: Moment;
  /** Whether the process at the other end is the one that said hello: nothing stands between that could swap it. */
  readonly direct: boolean;
}

interface Hello {
  readonly pid: number;
  readonly database: string;
  readonly standby: boolean;
  readonly version: number;
}

/** Makes a fresh connection ours: checks the server and sets the session's own timeouts. */
export async function greet(
  client: pg.Client,
  timeoutMs: number,
  listenTo: readonly string[],
): Promise<Greeting> {
  const { rows } = await client.query<Hello>(
    `SELECT pg_backend_pid()::int4 AS pid, pg_is_in_recovery() AS standby,
            current_setting('server_version_num')::int4 AS version,
            (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database`,
  );
  const hello = rows[0] as Hello;
  if (hello.version < OLDEST_VERSION) {
    throw new LockError(
      'LOCK_UNSUPPORTED',
      `@locks/postgres: advisory locks need PostgreSQL 14 or newer, and this is ${hello.version}. Use postgresLeaseBackend.`,
    );
  }
  if (hello.standby) throw new StandbyError('the server is a standby: advisory locks there exclude nobody');
  const at = thisMoment();
  await client.query(
    [
      'SET statement_timeout = 0',
      'SET lock_timeout = 0',
      `SET idle_session_timeout = ${timeoutMs}`,
      ...listenTo.map((channel) => `LISTEN "${channel}"`),
    ].join(';'),
  );
  for (const settings of niceToHave(timeoutMs)) {
    await client.query(settings).catch((error: unknown) => {
      // Unknown to this version, or to its operating system.
      if (!/^(?:22023|42704|0A000)$/.test((error as { code?: string }).code ?? '')) throw error;
    });
  }
  const { processID } = client as { processID?: number };
  return { pid: hello.pid, database: hello.database, at, direct: processID === hello.pid };
}

/** Dead clients leave the queue before their turn. None may end a session sooner than its timeout. */
function niceToHave(timeoutMs: number): readonly string[] {
  const seconds = Math.ceil(timeoutMs / 1_000);
  const interval = Math.ceil(seconds / 3);
  return [
    'SET client_connection_check_interval = 1000',
    `SET tcp_keepalives_idle = ${seconds}; SET tcp_keepalives_interval = ${interval}; SET tcp_keepalives_count = 3`,
    `SET tcp_user_timeout = ${timeoutMs + 1_000}`,
    'SET transaction_timeout = 0',
  ];
}
