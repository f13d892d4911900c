import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool, ResultSetHeader } from 'mysql2/promise';
import { backends, mysqlPool } from './clients.ts';
import { type Contender, foreign, ours, POLL_MS, TTL_MS } from './contender.ts';

const store = 'mysql';

const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS raw_leases (
  name VARBINARY(512) NOT NULL PRIMARY KEY, owner VARBINARY(64) NOT NULL, expires_at BIGINT NOT NULL) ENGINE=InnoDB`;

const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

// MySQL makes the assignments one after another: the condition reads expires_at, which therefore comes last.
const TAKE = `INSERT INTO raw_leases VALUES (?, ?, ${NOW} + ?)
ON DUPLICATE KEY UPDATE owner = IF(expires_at <= ${NOW}, VALUES(owner), owner),
expires_at = IF(expires_at <= ${NOW}, VALUES(expires_at), expires_at)`;

const GIVE_BACK = 'DELETE FROM raw_leases WHERE name = ? AND owner = ?';

// Without this flag an update that changes nothing counts as an affected row.
const poolThatCountsChanges = mysqlPool(['-FOUND_ROWS']);

/** The minimal lease: a table, one statement to acquire and one to release, on a pool. No token. */
const rawLease = foreign(
  { store, name: 'raw lease table', kind: 'floor' },
  poolThatCountsChanges,
  async (pool) => {
    await pool.query(CREATE_TABLE);
    return async (resource) => {
      const name = Buffer.from(resource);
      const owner = randomUUID();
      const values = [name, owner, TTL_MS * 1000];
      while (!(await changes(pool, TAKE, values))) await delay(POLL_MS);
      return () => pool.query(GIVE_BACK, [name, owner]);
    };
  },
);

export const mysqlContenders: readonly Contender[] = [
  rawLease,
  ours({ store, name: '@locks/mysql', floor: rawLease.name }, backends.mysql),
];

/** Whether no other holder's row was in the way. */
async function changes(pool: Pool, sql: string, values: unknown[]): Promise<boolean> {
  for (;;) {
    try {
      const [header] = await pool.query<ResultSetHeader>(sql, values);
      return header.affectedRows > 0;
    } catch (error) {
      // Statements that meet on one row can deadlock: the server asks to try again.
      if ((error as { errno?: number }).errno !== 1213) throw error;
    }
  }
}
