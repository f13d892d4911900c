import type { AcquireRequest } from '@locks/core/backend';
import { type Cells, type Connections, type MysqlSession, PATIENT, type Urgency } from './connections.ts';
import type { WriteResult } from './connections.ts';
import type { LockRow } from './lock-row.ts';
import { isMissingTable } from './mysql-error.ts';
import type { Schema } from './schema.ts';
import { freshVersion, type MysqlStatements, type RowWrite, type Snapshot } from './mysql-statements.ts';

/** The time until which an answer is of use, on the clock of the call. */
export interface TimeLimit {
  now(): number;
  readonly deadline: number;
  /** The urgency of the request for a connection; default: at once. */
  readonly urgency?: Urgency;
}

const OWN_LIMIT_MS = 2_000;

/** The limit of a call whose connection may wait until the releases and renewals of others have theirs. */
export function unhurried(call: TimeLimit, urgency: Urgency = PATIENT): TimeLimit {
  return { now: () => call.now(), deadline: call.deadline, urgency };
}

/** The time limit of the backend's own statements. */
export function ownLimit(limitMs = OWN_LIMIT_MS): TimeLimit {
  const now = (): number => performance.now();
  return { now, deadline: now() + limitMs };
}

/** A snapshot, and the time at which it was requested, on `performance.now()`. */
export interface TimedSnapshot extends Snapshot {
  readonly askedAt: number;
}

/**
 * Whether a newer state, of the server's time `at`, was learned while the snapshot was in flight. The snapshot is newer than
 * any state learned before its request, whatever the server's clock says, which may have been set back.
 */
export function isOvertaken({ now, askedAt }: TimedSnapshot, at: number, learnedAt: number): boolean {
  return learnedAt > askedAt && at > now;
}

/** The smallest default of `max_allowed_packet` of a supported server, used until a snapshot tells the real value. */
const MIN_PACKET_BYTES = 1_048_576;
/** The most that a MEDIUMBLOB holds. */
const MAX_STATE_BYTES = 16_777_215;
/** The length of a statement without the state. */
const STATEMENT_BYTES = 4_096;

const NOTHING: WriteResult = { rows: 0, value: 0 };

/** The tables, one round trip to a method; {@link MysqlStatements} says what each statement does. */
export class MysqlStore {
  readonly statements: MysqlStatements;
  readonly #connections: Connections;
  readonly #schema: Schema;
  #packetBytes = MIN_PACKET_BYTES;

  constructor(connections: Connections, statements: MysqlStatements, schema: Schema) {
    this.#connections = connections;
    this.statements = statements;
    this.#schema = schema;
  }

  /** The longest state in bytes: written whole, in hexadecimal, it fits into one packet. */
  get maxStateBytes(): number {
    return Math.min((this.#packetBytes - STATEMENT_BYTES) / 2, MAX_STATE_BYTES);
  }

  get packetBytes(): number {
    return this.#packetBytes;
  }

  /** Takes a resource and returns its token, if it was free, and still wanted when there was a connection. */
  async take(
    request: AcquireRequest,
    limit: TimeLimit,
    isWanted: () => boolean,
  ): Promise<{ readonly version: number; readonly token: number } | undefined> {
    const version = freshVersion();
    const sql = this.statements.take({ request, version });
    const { value } = await this.session(limit, async (session) =>
      isWanted() ? session.write(sql) : NOTHING,
    );
    return value > 0 ? { version, token: value } : undefined;
  }

  /** Compares and swaps: writes if the row has not changed since the decision; returns the server's time of the write. */
  async compareAndWrite(write: RowWrite, limit: TimeLimit): Promise<number | undefined> {
    const { rows, value } = await this.write(this.statements.write(write), limit);
    return rows === 1 ? value : undefined;
  }

  async snapshot(
    names: readonly string[],
    known: readonly number[],
    limit: TimeLimit,
  ): Promise<TimedSnapshot> {
    const askedAt = performance.now();
    const cells = await this.read(this.statements.read(names, known), limit);
    const snapshot = this.statements.snapshot(cells, known);
    this.#packetBytes = snapshot.packetBytes;
    return { ...snapshot, askedAt };
  }

  async row(name: string, limit: TimeLimit): Promise<{ snapshot: TimedSnapshot; row: LockRow | undefined }> {
    const snapshot = await this.snapshot([name], [], limit);
    return { snapshot, row: snapshot.rows.get(name) };
  }

  write(sql: string, limit: TimeLimit): Promise<WriteResult> {
    return this.session(limit, (session) => session.write(sql));
  }

  read(sql: string, limit: TimeLimit): Promise<readonly Cells[]> {
    return this.session(limit, (session) => session.read(sql));
  }

  async session<T>(limit: TimeLimit, work: (session: MysqlSession) => Promise<T>): Promise<T> {
    await this.#schema.ready();
    try {
      return await this.#connections.session(limit.deadline - limit.now(), work, limit.urgency);
    } catch (error) {
      if (isMissingTable(error)) this.#schema.forget();
      throw error;
    }
  }
}
