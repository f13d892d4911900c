import type { OnceRecord } from '@locks/once';
import { type Connection, createConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { entryOfRow, type SlotRow } from './sql-rows.ts';

const TIMEOUT_MS = 10_000;

/**
 * The record in the table `<tablePrefix>once_slots` of the database of a URL. Each call has a connection of its own: a job may
 * take hours between two.
 *
 * @param tablePrefix - the prefix of the tables of the locks, whose backend has checked it
 */
export function mysqlRecord(uri: string, tablePrefix = 'locks_'): OnceRecord {
  const table = `\`${tablePrefix}once_slots\``;
  const use = async <T>(work: (client: Connection) => Promise<T>): Promise<T> => {
    // Tokens are beyond what a number holds exactly.
    const numbers = { supportBigNumbers: true, bigNumberStrings: true };
    const client = await createConnection({ uri, connectTimeout: TIMEOUT_MS, ...numbers });
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  return {
    read: (job) =>
      use(async (client) => {
        try {
          const sql = `SELECT slot, state, token, label, at FROM ${table} WHERE job = ?`;
          const [rows] = await client.query<RowDataPacket[]>({ sql, timeout: TIMEOUT_MS }, [
            Buffer.from(job),
          ]);
          return entryOfRow(rows[0] as SlotRow | undefined);
        } catch (error) {
          if ((error as { readonly code?: unknown }).code !== 'ER_NO_SUCH_TABLE') throw error;
          await createTable(client, table);
          return undefined;
        }
      }),
    write: (job, { slot, state, token, label, at }) =>
      use(async (client) => {
        const key = Buffer.from(job);
        // The first row of a job can be replaced by any token.
        await client.query(
          `INSERT IGNORE INTO ${table} (job, slot, state, token, label, at) VALUES (?, '-', 'done', 0, '', 0)`,
          [key],
        );
        const sql = `UPDATE ${table} SET slot = ?, state = ?, token = ?, label = ?, at = ? WHERE job = ? AND token <= ?`;
        const values = [slot, state, String(token), label, at, key, String(token)];
        const [{ affectedRows }] = await client.query<ResultSetHeader>({ sql, timeout: TIMEOUT_MS }, values);
        // `affectedRows` counts the rows that were found, also where nothing changed.
        return affectedRows === 1;
      }),
  };
}

async function createTable(client: Connection, table: string): Promise<void> {
  // Names are compared byte by byte, as those of locks.
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${table} (job varbinary(512) PRIMARY KEY, slot varchar(64) NOT NULL,
      state varchar(5) NOT NULL, token bigint NOT NULL, label varchar(256) NOT NULL, at bigint NOT NULL)
      ENGINE = InnoDB DEFAULT CHARSET = utf8mb4`,
  );
}
