import { mustBe, readOptions } from '@locks/core/backend';
import { URGENT } from '@locks/record-protocol/table';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';
import { type Cells, Connections, type MysqlSession, type WriteResult } from './connections.ts';
import { isMissingTable } from './mysql-error.ts';
import { callbackPool, TABLES_TABLE } from './options.ts';
import { hex } from './state-sql.ts';
import { createStatement, MOST_BYTES } from './tables.ts';

const LIMIT_MS = 10_000;
/** The mark of a write that a newer token refused. */
const REFUSED = 2;

/** The options of a function that keeps rows in a table. */
export interface FencedTableOptions {
  readonly database?: string;
  readonly tablePrefix?: string;
}

/** A table whose rows have the fencing tokens of their writers, reached by a pool of the application. */
export class FencedTable {
  /** In SQL, with its database. */
  readonly name: string;
  readonly #connections: Connections;

  /**
   * @param what - the function that the user called, for messages: `mysqlSlots()`
   * @param name - the name of the table behind its prefix
   */
  constructor(
    what: string,
    name: string,
    pool: CallbackPool | PromisePool,
    options: FencedTableOptions | undefined,
  ) {
    const lender = callbackPool(pool, what);
    const { database, tablePrefix } = readOptions(what, options, TABLES_TABLE);
    this.name = `${database === undefined ? '' : `\`${database}\`.`}\`${tablePrefix}${name}\``;
    this.#connections = new Connections(() => lender, LIMIT_MS);
  }

  /** Reads rows. Where the table is missing, it is made with these columns. */
  async read(sql: string, columns: string): Promise<readonly Cells[]> {
    const read = (): Promise<readonly Cells[]> => this.#outside((session) => session.read(sql));
    return await read().catch(async (error: unknown) => {
      if (!isMissingTable(error)) throw error;
      await this.write(createStatement(this.name, columns));
      return await read();
    });
  }

  write(sql: string): Promise<WriteResult> {
    return this.#outside((session) => session.write(sql));
  }

  /**
   * Writes a row unless the present one has a newer token, and tells whether it did.
   *
   * @param row - SQL, by column; the first column is the key
   */
  async put(row: Readonly<Record<string, string>>, token: bigint): Promise<boolean> {
    // One statement: all columns compare the token that is there, which is assigned last, and tells whether it stayed.
    const isOlder = 'token <= VALUES(token)';
    const columns = Object.keys(row);
    const assignments = columns
      .slice(1)
      .map((column) => `${column} = IF(${isOlder}, VALUES(${column}), ${column})`);
    const sql =
      `INSERT INTO ${this.name} (${columns.join(', ')}, token) VALUES (${Object.values(row).join(', ')}, ${token}) ` +
      `ON DUPLICATE KEY UPDATE ${assignments.join(', ')}, token = IF(${isOlder}, VALUES(token), token + 0 * LAST_INSERT_ID(${REFUSED}))`;
    return (await this.write(sql)).value !== REFUSED;
  }

  /** Work that is part of no transaction of the application, whose snapshot is old and whose ROLLBACK undoes what is written. */
  #outside<T>(work: (session: MysqlSession) => Promise<T>): Promise<T> {
    const checked = async (session: MysqlSession): Promise<T> => {
      await session.checkOutside();
      return await work(session);
    };
    return this.#connections.session(LIMIT_MS, checked, URGENT);
  }
}

/**
 * A text without quotes, so that neither the character set nor the `sql_mode` of a session matters.
 *
 * @param what - what is refused if it is too long, which a session that is not strict would cut
 */
export function sqlText(value: string, what: string): string {
  const bytes = Buffer.from(value);
  if (bytes.length > MOST_BYTES) throw mustBe(what, `${MOST_BYTES} bytes at most`, value);
  return hex(bytes);
}
