import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { mysqlBackend } from '@locks/mysql';
import mysql from 'mysql2/promise';
import { type Contender, POLL_MS, TTL_MS } from './contender.ts';
import { oursContender } from './locks.ts';

const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS raw_leases (
  name VARBINARY(512) NOT NULL PRIMARY KEY, owner VARBINARY(64) NOT NULL, expires_at BIGINT NOT NULL) ENGINE=InnoDB`;

const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

// MySQL makes the assignments one after another: the condition reads expires_at, which therefore comes last.
const TAKE = `INSERT INTO raw_leases VALUES (?, ?, ${NOW} + ?)
ON DUPLICATE KEY UPDATE owner = IF(expires_at <= ${NOW}, VALUES(owner), owner),
expires_at = IF(expires_at <= ${NOW}, VALUES(expires_at), expires_at)`;

const GIVE_BACK = 'DELETE FROM raw_leases WHERE name = ? AND owner = ?';

/** The minimal lease: a table, one statement to acquire and one to release, on a pool. No token. */
const rawMysql: Contender = {
  store: 'mysql',
  name: 'raw lease table',
  kind: 'floor',
  floor: 'raw lease table',
  packages: ['mysql2'],
  async open(url) {
    // Without this flag an update that changes nothing counts as an affected row.
    const pool = mysql.createPool({ uri: url, flags: ['-FOUND_ROWS'] });
    await pool.query(CREATE_TABLE);
    return {
      async acquire(resource) {
        const name = Buffer.from(resource);
        const owner = randomUUID();
        const values = [name, owner, TTL_MS * 1000];
        while (!(await changes(pool, TAKE, values))) await delay(POLL_MS);
        return () => pool.query(GIVE_BACK, [name, owner]);
      },
      ping: () => pool.query('SELECT 1'),
      close: () => pool.end(),
    };
  },
};

/** The backend on a pool of the application, with mysql2's default of at most 10 connections. */
const locksMysql: Contender = oursContender({
  store: 'mysql',
  name: '@locks/mysql',
  floor: 'raw lease table',
  packages: ['@locks/mysql', 'mysql2'],
  async openLocks(url, ttlMs) {
    const pool = mysql.createPool(url);
    const locks = createLocks(mysqlBackend({ pool }), { ttlMs });
    return {
      locks,
      ping: () => pool.query('SELECT 1'),
      close: async () => {
        await locks.close();
        await pool.end();
      },
    };
  },
});

export const mysqlContenders: readonly Contender[] = [rawMysql, locksMysql];

/** Whether no other holder's row was in the way. */
async function changes(pool: mysql.Pool, sql: string, values: unknown[]): Promise<boolean> {
  for (;;) {
    try {
      const [header] = await pool.query<mysql.ResultSetHeader>(sql, values);
      return header.affectedRows > 0;
    } catch (error) {
      // Statements that meet on one row can deadlock: the server asks to try again.
      if ((error as { errno?: number }).errno !== 1213) throw error;
    }
  }
}
