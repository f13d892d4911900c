import { randomFillSync } from 'node:crypto';
import type { AcquireRequest } from '@locks/core/backend';
import type { Cells } from './connections.ts';
import { micros } from './draft.ts';
import type { Draft } from './draft.ts';
import { decodeState, encodeSole, encodeState, type LockState } from './lock-state.ts';
import type { Tables } from './tables.ts';

/** Microseconds since 1970. Not `NOW()`, which is in the time zone of the session. One value for the whole statement. */
const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** The largest BIGINT. */
const overflows = '9223372036854775807';

/** How long a process that waits may be silent before its places are passed over. */
export const clientAliveMs = 3_000;

/** The answer to `read`. */
export interface Snapshot {
  /** The server's time. */
  readonly now: number;
  readonly alive: ReadonlySet<string>;
  /** Names that have a row; `undefined`: its version is among those that were known. */
  readonly states: ReadonlyMap<string, LockState | undefined>;
}

export interface Take {
  readonly request: AcquireRequest;
  readonly version: number;
}

export interface Write {
  readonly name: string;
  readonly draft: Draft;
  readonly version: number;
}

/**
 * The SQL. Nothing in it is a text: names and states are hexadecimal and the rest are whole numbers, so that neither the
 * character set nor the `sql_mode` of a session matters.
 */
export class Statements {
  readonly tables: Tables;

  constructor(tables: Tables) {
    this.tables = tables;
  }

  /**
   * Takes what is free in one statement, whatever the row says or if there is none. `LAST_INSERT_ID` carries the token back
   * in the answer, or 0. A new row begins above every token that was ever swept away, and above the clock.
   */
  take({ request, version }: Take): string {
    const token = `LAST_INSERT_ID(GREATEST(value + 1, ${now}))`;
    const { name, span, state } = takeCells(request);
    return `INSERT INTO ${this.tables.locks} (name, version, token, waiting, free_at, at, state)
SELECT ${name}, ${version}, ${token}, 0, ${now} + ${span}, ${now}, ${state}
FROM ${this.tables.meta} WHERE item = 'token' LOCK IN SHARE MODE
${this.#ifFree('token + LAST_INSERT_ID(0)')}`;
  }

  /**
   * The same for several, all or none: for a row that is not free the sum below overflows, which is an error in every
   * `sql_mode`, and undoes the whole statement. (In a transaction of several statements a client that freezes would keep the
   * rows locked for as long as its connection lives.)
   */
  takeAll(takes: readonly Take[]): string {
    const rows = takes.map(({ request, version }) => {
      const { name, span, state } = takeCells(request);
      return `SELECT ${name} AS name, ${version} AS version, ${span} AS span, ${state} AS state`;
    });
    return `INSERT INTO ${this.tables.locks} (name, version, token, waiting, free_at, at, state)
SELECT wanted.name, wanted.version, GREATEST(minted.value + 1, ${now}), 0, ${now} + wanted.span, ${now}, wanted.state
FROM ${this.tables.meta} minted, (${rows.join(' UNION ALL ')}) wanted WHERE minted.item = 'token' LOCK IN SHARE MODE
${this.#ifFree(`${overflows} + token`)}`;
  }

  /** The assignments are made one after another: what the condition looks at comes last. */
  #ifFree(otherwise: string): string {
    const { locks } = this.tables;
    const free = `waiting = 0 AND free_at <= ${now}`;
    return `ON DUPLICATE KEY UPDATE
token = IF(${free}, LAST_INSERT_ID(GREATEST(token + 1, ${now})), ${otherwise}),
version = IF(${free}, VALUES(version), ${locks}.version),
at = IF(${free}, ${now}, at),
state = IF(${free}, VALUES(state), ${locks}.state),
free_at = IF(${free}, VALUES(free_at), free_at)`;
  }

  /** Writes one state over the version that it was made from. `LAST_INSERT_ID` carries the time of the write back. */
  write({ name, draft, version }: Write): string {
    return `UPDATE ${this.tables.locks} SET token = ${draft.token}, waiting = ${draft.places.length},
free_at = ${freeAt(draft)}, state = ${hex(encodeState(draft.holds, draft.places))}, version = ${version}, at = LAST_INSERT_ID(${now})
WHERE ${unchanged({ name, draft, version })}`;
  }

  /** The same for many: each row is written or not, by itself. */
  writeAll(writes: readonly Write[]): string {
    const each = (value: (draft: Draft, version: number) => string | number): string =>
      `CASE version ${writes.map(({ draft, version }) => `WHEN ${draft.version} THEN ${value(draft, version)}`).join(' ')} END`;
    return `UPDATE ${this.tables.locks} SET token = ${each((draft) => draft.token)}, waiting = ${each((draft) => draft.places.length)},
free_at = ${each(freeAt)}, state = ${each((draft) => hex(encodeState(draft.holds, draft.places)))},
at = LAST_INSERT_ID(${now}), version = ${each((_, version) => version)}
WHERE ${writes.map((write) => `(${unchanged(write)})`).join(' OR ')}`;
  }

  /** States, and who lives, as of one moment. A state whose version is known already stays where it is. */
  read(names: readonly string[], known: readonly number[] = []): string {
    const { locks, clients } = this.tables;
    const state = known.length === 0 ? 'state' : `IF(version IN (${known.join(',')}), X'', state)`;
    return `SELECT 0, X'', 0, 0, ${now}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${now} - ${micros(clientAliveMs)}
UNION ALL (SELECT 2, name, version, token, at, ${state}, 1 FROM ${locks} WHERE name IN (${names.map(bytes).join(',')}))`;
  }

  /** A page of those in use, by name. */
  page(prefix: Buffer, after: Buffer | undefined, limit: number): string {
    const { locks, clients } = this.tables;
    const from = after === undefined ? `name >= ${hex(prefix)}` : `name > ${hex(after)}`;
    return `SELECT 0, X'', 0, 0, ${now}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${now} - ${micros(clientAliveMs)}
UNION ALL (SELECT 2, name, version, token, at, state, 1 FROM ${locks}
WHERE ${from} AND LEFT(name, ${prefix.length}) = ${hex(prefix)} AND (waiting > 0 OR free_at > ${now}) ORDER BY name LIMIT ${limit})`;
  }

  snapshot(rows: readonly Cells[], known: readonly number[] = []): Snapshot {
    const alive = new Set<string>();
    const states = new Map<string, LockState | undefined>();
    const unread = new Set(known);
    let serverNow = 0;
    for (const [kind, key, version, token, at, state] of rows as readonly SixCells[]) {
      if (Number(kind) === 0) serverNow = Number(at);
      else if (Number(kind) === 1) alive.add(key.toString());
      else if (unread.has(Number(version))) states.set(key.toString(), undefined);
      else states.set(key.toString(), decodeState(Number(version), Number(token), Number(at), state));
    }
    return { now: serverNow, alive, states };
  }

  beat(client: string): string {
    return `INSERT INTO ${this.tables.clients} (client, seen_at) VALUES (${bytes(client)}, ${now})
ON DUPLICATE KEY UPDATE seen_at = ${now}`;
  }

  leave(client: string): string {
    return `DELETE FROM ${this.tables.clients} WHERE client = ${bytes(client)}`;
  }

  /** One process sweeps for all. */
  claimSweep(everyMs: number): string {
    return `UPDATE ${this.tables.meta} SET value = ${now} WHERE item = 'swept_at' AND value <= ${now} - ${micros(everyMs)}`;
  }

  /** Rows whose last hold ended a while ago. Reads without locking anybody. */
  idleRows(idleMs: number, limit: number): string {
    const { locks, clients } = this.tables;
    return `SELECT 0, X'', 0, 0, ${now}, X'', @@autocommit
UNION ALL SELECT 1, client, 0, 0, 0, X'', 1 FROM ${clients} WHERE seen_at > ${now} - ${micros(clientAliveMs)}
UNION ALL (SELECT 2, name, version, token, at, state, 1 FROM ${locks}
WHERE free_at <= ${now} - ${micros(idleMs)} AND at <= ${now} - ${micros(idleMs)} LIMIT ${limit})`;
  }

  /** Before the rows are deleted: it waits for every `take` that has read the old floor, and those after it see the new one. */
  raiseFloor(token: number): string {
    return `UPDATE ${this.tables.meta} SET value = GREATEST(value, ${token}) WHERE item = 'token'`;
  }

  deleteRows(rows: readonly { readonly name: string; readonly version: number }[]): string {
    const each = rows.map(({ name, version }) => `(name = ${bytes(name)} AND version = ${version})`);
    return `DELETE FROM ${this.tables.locks} WHERE ${each.join(' OR ')}`;
  }

  /** The limit is for sessions with `sql_safe_updates`. */
  deleteSilentClients(): string {
    return `DELETE FROM ${this.tables.clients} WHERE seen_at <= ${now} - ${micros(20 * clientAliveMs)} LIMIT 1000`;
  }

  schemaVersion(): string {
    return `SELECT value, @@autocommit FROM ${this.tables.meta} WHERE item = 'version'`;
  }
}

type SixCells = readonly [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer];

const randomPool = Buffer.alloc(6 * 128);
let randomUsed = randomPool.length;

/** For a version: 48 random bits, which no other write of the same row will ever have. */
export function freshVersion(): number {
  if (randomUsed === randomPool.length) {
    randomFillSync(randomPool);
    randomUsed = 0;
  }
  randomUsed += 6;
  return randomPool.readUIntBE(randomUsed - 6, 6) + 1;
}

function takeCells({ acquisitionId, mode, label, resource, ttlMs }: AcquireRequest) {
  const span = micros(ttlMs);
  return { name: bytes(resource), span, state: hex(encodeSole(acquisitionId, mode, label, span)) };
}

/** When the last hold ends by itself. Who waits beyond it takes care of that. */
function freeAt({ holds }: Draft): string {
  const fixed = holds.reduce((latest, { until = 0 }) => Math.max(latest, until), 0);
  const span = holds.reduce((longest, { span = 0 }) => Math.max(longest, span), 0);
  return span === 0 ? String(fixed) : `GREATEST(${fixed}, ${now} + ${span})`;
}

/** Whether the row is still what the decision was made from, and what was alive then still is. */
function unchanged({ name, draft }: Write): string {
  const end = Number.isFinite(draft.aliveUntil) ? ` AND ${now} < ${draft.aliveUntil}` : '';
  // The end of a hold that was taken in one statement stands in the row only.
  const sole = draft.standsOnRow ? ` AND ${now} < free_at` : '';
  return `name = ${bytes(name)} AND version = ${draft.version}${end}${sole}`;
}

function bytes(text: string): string {
  return hex(Buffer.from(text, 'utf8'));
}

function hex(value: Buffer): string {
  return `X'${value.toString('hex')}'`;
}
