import { NoAnswerError } from '@locks/core/backend';
import type { Pool } from 'mysql2';
import {
  encodeState,
  type LockRow,
  ownLimit,
  type LockTable,
  type RowConflict,
  type RowTake,
  type RowTaken,
  type RowWrite,
  type RowWritten,
  type Snapshot,
  SpentTokensError,
  type TimeLimit,
  timesFromWrite,
  URGENT,
} from '@locks/record-protocol/table';
import { type Cells, type Connections, type MysqlSession } from './connections.ts';
import { isBroken, isMissingTable, isOverflow, isRetryableError } from './mysql-error.ts';
import {
  CLIENT_ALIVE_MS,
  type EncodedWrite,
  type MysqlStatements,
  type RowsRead,
} from './mysql-statements.ts';
import { OwnPool } from './own-pool.ts';
import type { Schema } from './schema.ts';

/** The smallest default of `max_allowed_packet` of a supported server, used until a snapshot tells the real value. */
const MIN_PACKET_BYTES = 1_048_576;
/** The most that a MEDIUMBLOB holds. */
const MAX_STATE_BYTES = 16_777_215;
/** The length of a statement without the state. */
const STATEMENT_BYTES = 4_096;
/** The bytes that a row needs in a statement of several besides its state. */
const ROW_BYTES = 2_048;
const LIST_PAGE = 64;
const SWEEP_EVERY_MS = 30_000;
/** The time for which a row must be idle: rows that were in use a moment ago are likely to be used again. */
const IDLE_MS = 10_000;
const SWEPT_AT_ONCE = 500;
const MIN_POLL_MS = 2;
/** A clock that is wrong by centuries, or somebody who writes into the table, must not use up the tokens. */
const LAST_MICROS = 2 ** 52;

/** The rows of `@locks/record-protocol` in three tables, one round trip to a method; {@link MysqlStatements} says how. */
export class MysqlTable implements LockTable {
  readonly name = 'mysql';
  readonly pace;
  readonly releaseBudgetMs = 1_000;
  /** So that the longest names fit into the smallest packet. */
  readonly namesAtOnce = 400;
  readonly rowsAtOnce = 200;
  /** A row is made by `take` alone, which reads the floor of the tokens. */
  readonly canCreate = false;
  readonly unusedKept = 0;
  readonly #statements: MysqlStatements;
  readonly #connections: Connections;
  readonly #schema: Schema;
  readonly #pool: OwnPool | Pool;
  #packetBytes = MIN_PACKET_BYTES;

  constructor({ connections, statements, schema }: MysqlAccess, maxPollMs: number, pool: OwnPool | Pool) {
    this.#connections = connections;
    this.#statements = statements;
    this.#schema = schema;
    this.#pool = pool;
    // A poll is one read of an index here, and turns are as uneven as the commits of the server.
    this.pace = { minPollMs: MIN_POLL_MS, maxPollMs, waiterTtlMs: CLIENT_ALIVE_MS, pollsPresentTurn: true };
  }

  /** Written whole, in hexadecimal, the longest state fits into one packet. */
  get maxStateBytes(): number {
    return Math.min((this.#packetBytes - STATEMENT_BYTES) / 2, MAX_STATE_BYTES);
  }

  get stateBound(): string {
    return `the server's max_allowed_packet of ${this.#packetBytes} bytes`;
  }

  async snapshot(names: readonly string[], known: readonly number[], limit: TimeLimit): Promise<Snapshot> {
    return this.#read(this.#statements.read(names, known), known, limit);
  }

  async take({ request, version }: RowTake, limit: TimeLimit, isWanted: () => boolean): Promise<RowTaken> {
    const sql = this.#statements.take({ request, version });
    const token = await this.#session(limit, async (session) =>
      isWanted() ? (await session.write(sql)).value : 0,
    );
    if (token === 0) return { status: 'conflict' };
    // The floor of the tokens is not a row that a later try would find.
    if (token > Number.MAX_SAFE_INTEGER) throw new SpentTokensError(token);
    const { acquisitionId: id, mode, label } = request;
    // Only the row has the end of the hold. A token is the time of its grant in microseconds, unless the clock went back.
    const times = { since: token, until: undefined, span: undefined };
    const row: LockRow = {
      version,
      token,
      holds: [{ id, mode, label, token, ...times, stolen: false }],
      waiters: [],
    };
    return { status: 'taken', row, token, at: 0 };
  }

  async write(write: RowWrite, limit: TimeLimit): Promise<RowWritten | RowConflict> {
    const encoded = encodedWrite(write);
    const { rows, value } = await this.#write(this.#statements.write(encoded), limit);
    return rows === 1 ? { status: 'written', at: value, source: encoded.bytes } : { status: 'conflict' };
  }

  /** Writes as many rows with one statement as fit into a packet. */
  async writeMany(
    writes: readonly RowWrite[],
    limit: TimeLimit,
  ): Promise<readonly (RowWritten | undefined)[]> {
    const outcomes: (RowWritten | undefined)[] = [];
    const rest = writes.map(encodedWrite);
    while (rest.length > 0) {
      let bytes = 0;
      const beyond = rest.findIndex((write, index) => {
        bytes += ROW_BYTES + 2 * write.bytes.length;
        return index > 0 && bytes > this.#packetBytes;
      });
      const part = rest.splice(0, beyond < 0 ? rest.length : beyond);
      const { rows, value } = await this.#write(this.#statements.writeAll(part), limit);
      // Where some rows were not written, their versions tell which.
      const areWritten = rows === part.length;
      outcomes.push(
        ...part.map(({ bytes: source }): RowWritten | undefined =>
          areWritten ? { status: 'written', at: value, source } : undefined,
        ),
      );
    }
    return outcomes;
  }

  async takeMany(
    takes: readonly RowTake[],
    limit: TimeLimit,
    isWanted: () => boolean,
  ): Promise<Snapshot | undefined> {
    const askedAt = performance.now();
    const cells = await this.#session(limit, async (session) => {
      if (!isWanted()) return undefined;
      try {
        await session.write(this.#statements.takeAll(takes));
      } catch (error) {
        if (!isOverflow(error)) throw error;
      }
      return await session.read(
        this.#statements.read(
          takes.map(({ request }) => request.resource),
          [],
        ),
      );
    });
    return cells && this.#snapshotOf(cells, [], askedAt);
  }

  async beat(client: string, limit: TimeLimit): Promise<void> {
    await this.#write(this.#statements.beat(client), limit);
  }

  async leave(client: string, limit: TimeLimit): Promise<void> {
    await this.#write(this.#statements.leave(client), limit);
  }

  async *list(prefix: string, limit: TimeLimit): AsyncGenerator<Snapshot> {
    let after: Buffer | undefined;
    for (;;) {
      const page = await this.#read(this.#statements.page(Buffer.from(prefix), after, LIST_PAGE), [], limit);
      yield page;
      const last = [...page.rows.keys()].at(-1);
      if (page.rows.size < LIST_PAGE || last === undefined) return;
      after = Buffer.from(last);
    }
  }

  async ping(limit: TimeLimit): Promise<void> {
    await this.#session(limit, (session) => session.read('SELECT 1'));
  }

  async prepare({ signal }: { readonly signal?: AbortSignal }): Promise<void> {
    await this.#schema.prepare(signal);
  }

  /** Sweeps if no other process has just swept for all. Rows that were in use then are left for the next time. */
  async sweep(): Promise<boolean> {
    const { rows } = await this.#write(this.#statements.claimSweep(SWEEP_EVERY_MS / 2), sweepLimit());
    if (rows === 0) return true;
    await this.deleteIdle(IDLE_MS);
    const left = await this.#read(this.#statements.idleRows(0, 1), [], sweepLimit());
    return left.rows.size > 0;
  }

  /** Deletes rows that were idle for `idleForMs`; returns how many. */
  async deleteIdle(idleForMs: number): Promise<number> {
    const statements = this.#statements;
    let deleted = 0;
    for (let found = SWEPT_AT_ONCE; found === SWEPT_AT_ONCE; ) {
      const read = await this.#read(statements.idleRows(idleForMs, SWEPT_AT_ONCE), [], sweepLimit());
      const { rows: idle, alive } = read;
      found = idle.size;
      const rows = [...idle].flatMap(([name, row]) => {
        if (row === undefined || row.malformed !== undefined) return [];
        if (row.waiters.some(({ client }) => alive.has(client))) return [];
        // Such a token would use up those of all new rows: its row stays.
        if (row.token > LAST_MICROS) return [];
        return [{ name, version: row.version, token: row.token }];
      });
      if (rows.length === 0) break;
      // The floor is raised first: a row that is made after these are gone begins above their tokens (docs/spec.md §6.4).
      await this.#write(statements.raiseFloor(Math.max(...rows.map(({ token }) => token))), sweepLimit());
      const result = await this.#write(statements.deleteRows(rows), sweepLimit());
      deleted += result.rows;
    }
    await this.#write(statements.deleteSilentClients(), sweepLimit());
    return deleted;
  }

  isClientClosed(): boolean {
    // The types of mysql2 lack the flag.
    return '_closed' in this.#pool && this.#pool._closed === true;
  }

  isRetryable(error: unknown): boolean {
    return isRetryableError(error);
  }

  isBroken(error: unknown): boolean {
    return isBroken(error) && !(error instanceof NoAnswerError);
  }

  async close(): Promise<void> {
    if (this.#pool instanceof OwnPool) await this.#pool.end();
  }

  async #read(sql: string, known: readonly number[], limit: TimeLimit): Promise<Snapshot> {
    const askedAt = performance.now();
    const cells = await this.#session(limit, (session) => session.read(sql));
    return this.#snapshotOf(cells, known, askedAt);
  }

  #snapshotOf(cells: readonly Cells[], known: readonly number[], askedAt: number): Snapshot {
    const { packetBytes, ...snapshot }: RowsRead = this.#statements.snapshot(cells, known);
    this.#packetBytes = packetBytes;
    return { ...snapshot, askedAt };
  }

  #write(sql: string, limit: TimeLimit) {
    return this.#session(limit, (session) => session.write(sql));
  }

  async #session<T>(limit: TimeLimit, work: (session: MysqlSession) => Promise<T>): Promise<T> {
    await this.#schema.ready();
    try {
      return await this.#connections.session(limit.deadline - limit.now(), work, limit.urgency ?? URGENT);
    } catch (error) {
      if (isMissingTable(error)) this.#schema.forget();
      throw error;
    }
  }
}

/** The ways to the tables. */
export interface MysqlAccess {
  readonly connections: Connections;
  readonly statements: MysqlStatements;
  readonly schema: Schema;
}

function encodedWrite(write: RowWrite): EncodedWrite {
  return { ...write, bytes: encodeState(write.decision, timesFromWrite) };
}

function sweepLimit(): TimeLimit {
  return ownLimit(CLIENT_ALIVE_MS);
}
