import type { AcquireRequest } from '@locks/core/backend';
import {
  decodedOr,
  decodeState,
  encodeSole,
  type LockRow,
  micros,
  type RowDecision,
  type RowTake,
  type RowWrite,
  untilFromWrite,
} from '@locks/record-protocol/table';
import type { Cells } from './connections.ts';
import { hex, stateSql } from './state-sql.ts';
import type { Tables } from './tables.ts';

/**
 * The server's time in microseconds since 1970, one value for the whole statement. `NOW()` would be in the session's time zone.
 */
const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** A row with this token gives out no more: numbers of JavaScript do not tell a higher one from the next. */
const LAST_TOKEN = Number.MAX_SAFE_INTEGER;

/** The largest BIGINT. */
const MAX_BIGINT = '9223372036854775807';

/** The longest silence of a waiting process before its waiters are passed over. */
export const CLIENT_ALIVE_MS = 3_000;

/** A clause that selects all rows: an explicit `LIMIT` overrides the `sql_select_limit` of the session. */
const ALL_ROWS = 'LIMIT 18446744073709551615';

/** The answer to `read`. */
export interface RowsRead {
  /** The server's time. */
  readonly now: number;
  /** The server's `max_allowed_packet`. */
  readonly packetBytes: number;
  readonly alive: ReadonlySet<string>;
  /** The rows that exist, by name; `undefined`: the version of the row is among the known ones. */
  readonly rows: ReadonlyMap<string, LockRow | undefined>;
}

/** A write of a row, with the encoded state. */
export interface EncodedWrite extends RowWrite {
  readonly bytes: Buffer;
}

/**
 * The SQL. It contains no text literals: names and states are hexadecimal and the rest are whole numbers, so that neither the
 * character set nor the `sql_mode` of a session matters.
 */
export class MysqlStatements {
  readonly tables: Tables;

  constructor(tables: Tables) {
    this.tables = tables;
  }

  /**
   * Takes a free resource in one statement, whatever the row says, or if there is none. `LAST_INSERT_ID` carries the token back
   * in the answer, or 0. A new row begins above every token that was ever swept away, and above the clock.
   */
  take({ request, version }: RowTake): string {
    const token = `LAST_INSERT_ID(GREATEST(value + 1, ${NOW}))`;
    const { name, span, state } = takeCells(request);
    return `INSERT INTO ${this.tables.locks} (name, version, token, waiting, free_at, at, state)
SELECT ${name}, ${version}, ${token}, 0, ${NOW} + ${span}, ${NOW}, ${state}
FROM ${this.tables.meta} WHERE item = 'token' LOCK IN SHARE MODE
${this.#ifFree('token + LAST_INSERT_ID(0)')}`;
  }

  /**
   * Takes several resources, all or none: for a row that is not free the sum below overflows, which is an error in every
   * `sql_mode`, and undoes the whole statement. (In a transaction of several statements a client that freezes would keep the
   * rows locked for as long as its connection lives.)
   */
  takeAll(takes: readonly RowTake[]): string {
    const rows = takes.map(({ request, version }) => {
      const { name, span, state } = takeCells(request);
      return `SELECT ${name} AS name, ${version} AS version, ${span} AS span, ${state} AS state`;
    });
    return `INSERT INTO ${this.tables.locks} (name, version, token, waiting, free_at, at, state)
SELECT wanted.name, wanted.version, GREATEST(minted.value + 1, ${NOW}), 0, ${NOW} + wanted.span, ${NOW}, wanted.state
FROM ${this.tables.meta} minted, (${rows.join(' UNION ALL ')}) wanted WHERE minted.item = 'token' LOCK IN SHARE MODE
${this.#ifFree(`${MAX_BIGINT} + token`)}`;
  }

  /** The assignments of a take. The server makes them one after another: the fresh version tells the later ones that it was free. */
  #ifFree(otherwise: string): string {
    const { locks } = this.tables;
    const free = `waiting = 0 AND free_at <= ${NOW} AND token < ${LAST_TOKEN}`;
    const taken = `${locks}.version = VALUES(version)`;
    return `ON DUPLICATE KEY UPDATE
version = IF(${free}, VALUES(version), ${locks}.version),
token = IF(${taken}, LAST_INSERT_ID(GREATEST(token + 1, ${NOW})), ${otherwise}),
at = IF(${taken}, ${NOW}, at),
state = IF(${taken}, VALUES(state), ${locks}.state),
free_at = IF(${taken}, VALUES(free_at), free_at)`;
  }

  /** Writes one state over the version that it was made from. `LAST_INSERT_ID` carries the time of the write back. */
  write(write: EncodedWrite): string {
    const { decision, version } = write;
    return `UPDATE ${this.tables.locks} SET token = ${decision.token}, waiting = ${decision.waiting},
free_at = ${freeAt(decision)}, state = ${newState(write)}, version = ${version}, at = LAST_INSERT_ID(${NOW})
WHERE ${unchanged(write)}`;
  }

  /** Writes many states: each row is written or not, by itself. */
  writeAll(writes: readonly EncodedWrite[]): string {
    const each = (value: (write: EncodedWrite) => string | number): string =>
      `CASE version ${writes.map((write) => `WHEN ${write.decision.version} THEN ${value(write)}`).join(' ')} END`;
    return `UPDATE ${this.tables.locks} SET token = ${each(({ decision }) => decision.token)}, waiting = ${each(({ decision }) => decision.waiting)},
free_at = ${each(({ decision }) => freeAt(decision))}, state = ${each(newState)},
at = LAST_INSERT_ID(${NOW}), version = ${each(({ version }) => version)}
WHERE ${writes.map((write) => `(${unchanged(write)})`).join(' OR ')}`;
  }

  /** Reads states and the clients that live, as of one moment. A state whose version is known already is not sent. */
  read(names: readonly string[], known: readonly number[]): string {
    const { locks, clients } = this.tables;
    const state = known.length === 0 ? 'state' : `IF(version IN (${known.join(',')}), X'', state)`;
    return `SELECT 0, X'', @@max_allowed_packet, 0, ${NOW}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${NOW} - ${micros(CLIENT_ALIVE_MS)}
UNION ALL (SELECT 2, name, version, token, at, ${state}, 1 FROM ${locks} WHERE name IN (${names.map(bytes).join(',')})) ${ALL_ROWS}`;
  }

  /** Reads a page of the resources in use, by name. */
  page(prefix: Buffer, after: Buffer | undefined, limit: number): string {
    const { locks, clients } = this.tables;
    const from = after === undefined ? `name >= ${hex(prefix)}` : `name > ${hex(after)}`;
    return `SELECT 0, X'', @@max_allowed_packet, 0, ${NOW}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${NOW} - ${micros(CLIENT_ALIVE_MS)}
UNION ALL (SELECT 2, name, version, token, at, state, 1 FROM ${locks}
WHERE ${from} AND LEFT(name, ${prefix.length}) = ${hex(prefix)} AND (waiting > 0 OR free_at > ${NOW}) ORDER BY name LIMIT ${limit}) ${ALL_ROWS}`;
  }

  snapshot(all: readonly Cells[], known: readonly number[]): RowsRead {
    const alive = new Set<string>();
    const rows = new Map<string, LockRow | undefined>();
    const unread = new Set(known);
    let serverNow = 0;
    let packetBytes = 0;
    for (const [kind, key, version, token, at, state] of all as readonly SixCells[]) {
      if (Number(kind) === 0) {
        serverNow = Number(at);
        packetBytes = Number(version);
      } else if (Number(kind) === 1) alive.add(key.toString());
      else if (unread.has(Number(version))) rows.set(key.toString(), undefined);
      else {
        const name = key.toString();
        const row = decodedOr(`the row ${JSON.stringify(name)} of ${this.tables.locks}`, () => {
          const numbers = { version: Number(version), token: Number(token), at: Number(at) };
          return { ...decodeState({ ...numbers, bytes: state }, untilFromWrite), source: state };
        });
        rows.set(name, row);
      }
    }
    return { now: serverNow, packetBytes, alive, rows };
  }

  beat(client: string): string {
    return `INSERT INTO ${this.tables.clients} (client, seen_at) VALUES (${bytes(client)}, ${NOW})
ON DUPLICATE KEY UPDATE seen_at = ${NOW}`;
  }

  leave(client: string): string {
    return `DELETE FROM ${this.tables.clients} WHERE client = ${bytes(client)}`;
  }

  /** Claims the sweep: it changes a row for one process only, which then sweeps for all. */
  claimSweep(everyMs: number): string {
    return `UPDATE ${this.tables.meta} SET value = ${NOW} WHERE item = 'swept_at' AND value <= ${NOW} - ${micros(everyMs)}`;
  }

  /** Reads the rows whose last hold ended a while ago, without row locks. */
  idleRows(idleMs: number, limit: number): string {
    const { locks, clients } = this.tables;
    return `SELECT 0, X'', @@max_allowed_packet, 0, ${NOW}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${NOW} - ${micros(CLIENT_ALIVE_MS)}
UNION ALL (SELECT 2, name, version, token, at, state, 1 FROM ${locks}
WHERE free_at <= ${NOW} - ${micros(idleMs)} AND at <= ${NOW} - ${micros(idleMs)} LIMIT ${limit}) ${ALL_ROWS}`;
  }

  /**
   * Raises the floor of tokens, before rows are deleted: it waits for every `take` that has read the old floor; later ones see
   * the new.
   */
  raiseFloor(token: number): string {
    return `UPDATE ${this.tables.meta} SET value = GREATEST(value, ${token}) WHERE item = 'token'`;
  }

  deleteRows(rows: readonly { readonly name: string; readonly version: number }[]): string {
    const each = rows.map(({ name, version }) => `(name = ${bytes(name)} AND version = ${version})`);
    return `DELETE FROM ${this.tables.locks} WHERE ${each.join(' OR ')}`;
  }

  /** Deletes silent clients. The LIMIT is for sessions with `sql_safe_updates`. */
  deleteSilentClients(): string {
    return `DELETE FROM ${this.tables.clients} WHERE seen_at <= ${NOW} - ${micros(20 * CLIENT_ALIVE_MS)} LIMIT 1000`;
  }

  schemaVersion(): string {
    return `SELECT value, @@autocommit FROM ${this.tables.meta} WHERE item = 'version' LIMIT 1`;
  }
}

type SixCells = readonly [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer];

function takeCells({ acquisitionId, mode, label, resource, ttlMs }: AcquireRequest) {
  const span = micros(ttlMs);
  return { name: bytes(resource), span, state: hex(encodeSole(acquisitionId, mode, label, span)) };
}

/** The SQL of the time at which the last hold expires. */
function freeAt({ holds }: RowDecision): string {
  const fixed = holds.reduce((latest, { until = 0 }) => Math.max(latest, until), 0);
  const span = holds.reduce((longest, { span = 0 }) => Math.max(longest, span), 0);
  return span === 0 ? String(fixed) : `GREATEST(${fixed}, ${NOW} + ${span})`;
}

/** The SQL of the state. The content of the row that is written over is known where this process read or wrote it. */
function newState({ decision, bytes }: EncodedWrite): string {
  return stateSql(decision.source as Buffer | undefined, bytes);
}

/** The SQL condition that the row has not changed since the decision, and that the holds that lived then still do. */
function unchanged({ name, decision }: RowWrite): string {
  const end = Number.isFinite(decision.aliveUntil) ? ` AND ${NOW} < ${decision.aliveUntil}` : '';
  // Only the row has the end of a hold that was taken in one statement.
  const sole = decision.standsOnRow ? ` AND ${NOW} < free_at` : '';
  return `name = ${bytes(name)} AND version = ${decision.version}${end}${sole}`;
}

function bytes(text: string): string {
  return hex(Buffer.from(text, 'utf8'));
}
