import { LockError } from '@locks/core';
import type pg from 'pg';
import { type Moment, thisMoment } from './life-sign.ts';

/** A server that follows another keeps advisory locks of its own, which exclude nobody elsewhere. */
export class StandbyError extends Error {}

export interface Greeting {
  readonly pid: number;
  /** Before the settings were sent. */
  readonly at: Moment;
  /** Whether the process at the other end is the one that said hello: nothing stands between that could swap it. */
  readonly direct: boolean;
}

interface Hello {
  readonly pid: number;
  readonly standby: boolean;
}

/** Makes a fresh connection ours: checks the server and sets the session's own timeouts. */
export async function greet(
  client: pg.Client,
  timeoutMs: number,
  listenTo: readonly string[],
): Promise<Greeting> {
  const at = thisMoment();
  const hello = await introduce(client, timeoutMs);
  if (hello.standby) throw new StandbyError('the server is a standby: advisory locks there exclude nobody');
  const rest = [...niceSettings(timeoutMs), ...listenTo.map((channel) => `LISTEN "${channel}"`)];
  // One that this version or its operating system does not know undoes the others too.
  const all = await client.query(rest.join(';')).catch(isUnknownSetting);
  if (all === undefined) {
    for (const statement of rest) await client.query(statement).catch(isUnknownSetting);
  }
  const { processID } = client as { processID?: number };
  return { pid: hello.pid, at, direct: processID === hello.pid };
}

async function introduce(client: pg.Client, timeoutMs: number): Promise<Hello> {
  const statements = [
    'SELECT pg_backend_pid()::int4 AS pid, pg_is_in_recovery() AS standby',
    'SET statement_timeout = 0',
    'SET lock_timeout = 0',
    `SET idle_session_timeout = ${timeoutMs}`,
  ];
  try {
    // Several statements give several results.
    const results = (await client.query(statements.join(';'))) as unknown as pg.QueryResult<Hello>[];
    return results[0]?.rows[0] as Hello;
  } catch (error) {
    isUnknownSetting(error);
    throw tooOld();
  }
}

/** `idle_session_timeout`, which bounds what a frozen client costs the others, came with version 14. */
function tooOld(): LockError {
  return new LockError(
    'LOCK_UNSUPPORTED',
    '@locks/postgres: advisory locks need PostgreSQL 14 or newer. Use postgresLeaseBackend.',
  );
}

/** Rethrows anything else. */
function isUnknownSetting(error: unknown): undefined {
  if (/^(?:22023|42704|0A000)$/.test((error as { code?: string }).code ?? '')) return undefined;
  throw error;
}

/** With these, dead clients leave the queue before their turn. None ends a session sooner than its timeout. */
function niceSettings(timeoutMs: number): readonly string[] {
  const seconds = Math.ceil(timeoutMs / 1_000);
  return [
    'SET client_connection_check_interval = 1000',
    `SET tcp_keepalives_idle = ${seconds}`,
    `SET tcp_keepalives_interval = ${Math.ceil(seconds / 3)}`,
    'SET tcp_keepalives_count = 3',
    `SET tcp_user_timeout = ${timeoutMs + 1_000}`,
  ];
}
