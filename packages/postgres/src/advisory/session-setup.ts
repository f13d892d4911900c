import { LockError } from '@locks/core';
import { ask } from '../driver/ask.ts';
import type { Connection } from '../driver/postgres-driver.ts';
import { codeOf } from '../driver/server-error.ts';

/** The server is a standby: its advisory locks exclude nobody on the primary. */
export class StandbyError extends Error {}

/** The identity of a session that was set up. */
export interface SessionIdentity {
  readonly pid: number;
  /** Whether the session's process is the one that the connection was told: no pooler in between can swap it. */
  readonly direct: boolean;
}

interface ServerState {
  readonly pid: number;
  readonly standby: boolean;
}

/** Checks the server of a new connection, and sets the session's timeouts. */
export async function setUpSession(
  connection: Connection,
  timeoutMs: number,
  listenTo: readonly string[],
): Promise<SessionIdentity> {
  const { pid, standby } = await setTimeouts(connection, timeoutMs);
  if (standby) throw new StandbyError('the server is a standby: advisory locks there exclude nobody');
  const rest = [...livenessSettings(timeoutMs), ...listenTo.map((channel) => `LISTEN "${channel}"`)];
  // An unknown setting of the server or its operating system undoes the other settings of the same message, too.
  const all = await ask(connection, { text: rest.join(';') }).catch(ignoreUnknownSetting);
  if (all === undefined) {
    for (const text of rest) await ask(connection, { text }).catch(ignoreUnknownSetting);
  }
  return { pid, direct: connection.processId === pid };
}

async function setTimeouts(connection: Connection, timeoutMs: number): Promise<ServerState> {
  const settings = Object.entries({ statement_timeout: 0, lock_timeout: 0, idle_session_timeout: timeoutMs });
  const columns = [
    'pg_catalog.pg_backend_pid()',
    'pg_catalog.pg_is_in_recovery()',
    ...settings.map(([name, value]) => `pg_catalog.set_config('${name}', '${value}', false)`),
    // A wait for a lock is a long transaction. PostgreSQL has the setting since version 17.
    `(SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'transaction_timeout')`,
  ];
  try {
    const [[pid, standby] = []] = await ask(connection, { text: `SELECT ${columns.join(', ')}` });
    return { pid: Number(pid), standby: standby === 't' };
  } catch (error) {
    ignoreUnknownSetting(error);
    throw tooOld();
  }
}

/**
 * Makes the error for a server before version 14: it lacks `idle_session_timeout`, which limits how long a frozen client blocks
 * others.
 */
function tooOld(): LockError {
  return new LockError(
    'LOCK_UNSUPPORTED',
    '@locks/postgres: advisory locks need PostgreSQL 14 or newer. Use postgresLeaseBackend.',
  );
}

/** Ignores the error of an unknown setting, and rethrows any other. */
function ignoreUnknownSetting(error: unknown): undefined {
  if (/^(?:22023|42704|0A000)$/.test(codeOf(error))) return undefined;
  throw error;
}

/** The settings by which dead clients leave the queue before their turn. None ends a session before its timeout. */
function livenessSettings(timeoutMs: number): readonly string[] {
  const seconds = Math.ceil(timeoutMs / 1_000);
  return [
    'SET client_connection_check_interval = 1000',
    `SET tcp_keepalives_idle = ${seconds}`,
    `SET tcp_keepalives_interval = ${Math.ceil(seconds / 3)}`,
    'SET tcp_keepalives_count = 3',
    `SET tcp_user_timeout = ${timeoutMs + 1_000}`,
  ];
}
