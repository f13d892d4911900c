import {
  mustBe,
  type OnceRecord,
  readOptions,
  refuseNewerSlotEntry,
  type SlotEntry,
} from '@locks/core/backend';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';
import { Connections } from './connections.ts';
import { isMissingTable } from './mysql-error.ts';
import { callbackPool, TABLES_TABLE } from './options.ts';
import { hex } from './state-sql.ts';

/** The options of `mysqlRecord`. */
export interface MysqlRecordOptions {
  /**
   * The database of the table; it must exist.
   * @defaultValue the one that the connections use
   */
  readonly database?: string;
  /**
   * The prefix of the name of the table, `<tablePrefix>once_slots`: `A-Z a-z 0-9 _ $`, at most 48 characters. The table is made by the
   * first `read`, unless it exists.
   * @defaultValue `'locks_'`
   */
  readonly tablePrefix?: string;
}

const LIMIT_MS = 10_000;
const MOST_BYTES = 512;
/** The mark of a write that a newer token refused. */
const REFUSED = 2;

// setup: import { createLocks } from '@locks/core'; import { mysqlBackend, mysqlRecord } from '@locks/mysql'; import { day, once } from '@locks/once'; import mysql from 'mysql2/promise';
// setup: const pool = mysql.createPool('mysql://app@db/shop'); declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: a row for each job in the table `locks_once_slots`. The
 * locks may be in another store.
 *
 * @param pool - what `createPool()` of mysql2 or mysql2/promise gives
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad pool or option; its functions throw errors of mysql2 as they are, one with the
 * code `NO_ANSWER` after 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend({ pool }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', record: mysqlRecord(pool) } as const;
 * await once(locks, 'invoices', options, ({ fencingToken }) => sendInvoices(fencingToken));
 * ```
 */
export function mysqlRecord(pool: CallbackPool | PromisePool, options?: MysqlRecordOptions): OnceRecord {
  const lender = callbackPool(pool, 'mysqlRecord(): the pool');
  const { database, tablePrefix } = readOptions('mysqlRecord()', options, TABLES_TABLE);
  const table = `${database === undefined ? '' : `\`${database}\`.`}\`${tablePrefix}once_slots\``;
  const connections = new Connections(() => lender, LIMIT_MS);
  return {
    async read(job) {
      const sql = `SELECT slot, state, token, label, at, version, @@autocommit FROM ${table} WHERE job = ${text(job)} LIMIT 1`;
      const rows = await connections.read(sql, LIMIT_MS).catch(async (error: unknown) => {
        if (!isMissingTable(error)) throw error;
        await connections.write(createTable(table), LIMIT_MS);
        return [];
      });
      const cells = rows[0]?.map((cell) => cell.toString());
      if (cells === undefined) return undefined;
      const [slot, state, token, label, at, version] = cells as [
        string,
        string,
        string,
        string,
        string,
        string,
      ];
      refuseNewerSlotEntry(Number(version));
      return { slot, state: state as SlotEntry['state'], token: BigInt(token), label, at: Number(at) };
    },
    async write(job, { slot, state, token, label, at }) {
      // One statement: all columns compare the token that is there, which is assigned last, and tells whether it stayed.
      const isOlder = 'token <= VALUES(token)';
      const assignments = ['slot', 'state', 'label', 'at'].map(
        (column) => `${column} = IF(${isOlder}, VALUES(${column}), ${column})`,
      );
      const values = [text(job), text(slot), text(state), String(token), text(label), String(Math.trunc(at))];
      const { value } = await connections.write(
        `INSERT INTO ${table} (job, slot, state, token, label, at) VALUES (${values.join(', ')}) ` +
          `ON DUPLICATE KEY UPDATE ${assignments.join(', ')}, token = IF(${isOlder}, VALUES(token), token + 0 * LAST_INSERT_ID(${REFUSED}))`,
        LIMIT_MS,
      );
      return value !== REFUSED;
    },
  };
}

/** A text without quotes, so that neither the character set nor the `sql_mode` of a session matters. */
function text(value: string): string {
  const bytes = Buffer.from(value);
  // A session that is not strict would cut it.
  if (bytes.length > MOST_BYTES)
    throw mustBe('mysqlRecord(): a name or a slot', `${MOST_BYTES} bytes at most`, value);
  return hex(bytes);
}

/** Texts are compared byte by byte, as the names of locks. */
function createTable(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (job VARBINARY(${MOST_BYTES}) NOT NULL PRIMARY KEY, slot VARBINARY(${MOST_BYTES}) NOT NULL,
  state VARBINARY(5) NOT NULL, token BIGINT NOT NULL, label VARBINARY(256) NOT NULL, at BIGINT NOT NULL,
  version SMALLINT NOT NULL DEFAULT 1) ENGINE=InnoDB`;
}
