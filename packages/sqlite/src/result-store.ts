import { LockError } from '@locks/core';
import type { ResultStore } from '@locks/core/backend';
import { fileOfRows } from './file-of-rows.ts';

/** A row is kept so much longer than its result, since its token refuses writers that lost their lock. */
const FENCE_MS = 3_600_000;
const PREPARE = `CREATE TABLE IF NOT EXISTS shared_results (key TEXT PRIMARY KEY, value TEXT NOT NULL, token INTEGER NOT NULL, ends_at INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS shared_results_ends_at ON shared_results (ends_at)`;
const READ = 'SELECT value FROM shared_results WHERE key = ? AND ends_at > ?';
const WRITE = `INSERT INTO shared_results (key, value, token, ends_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, token = excluded.token, ends_at = excluded.ends_at
  WHERE shared_results.token <= excluded.token`;
/** A write removes at most ten old rows: more than it adds. */
const SWEEP = `DELETE FROM shared_results WHERE key IN (
  SELECT key FROM shared_results WHERE ends_at < ? ORDER BY ends_at LIMIT 10)`;

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { sqliteBackend, sqliteResults } from '@locks/sqlite';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a table of a SQLite file that all processes of the machine share. A result
 * ends by the clock of the machine; its fencing token is kept for an hour more, and each write removes a few older rows. While another
 * process writes, a call blocks its thread, for 10 s at most; then it rejects with the error of `node:sqlite`.
 *
 * @throws LockError `LOCK_UNSUPPORTED` before Node 22.13; `LOCK_INVALID_ARGUMENT` for a bad option; `set` rejects with `LOCK_LOST` and
 * reason `taken-over` when a newer token wrote before
 * @param path - a file on a local disk, made when it is missing: the file of the locks, or another one
 * @example
 * ```ts
 * const path = './locks.db';
 * const locks = createLocks(sqliteBackend(path));
 * const options = { store: sqliteResults(path), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function sqliteResults(path: string): ResultStore {
  const file = fileOfRows('sqliteResults()', path, PREPARE);
  return {
    async get(key) {
      const row = file.use((db) => db.prepare(READ).get(key, Date.now()));
      return row?.['value'] as string | undefined;
    },
    async set(key, value, token, ttlMs) {
      const isWritten = file.use((db) => {
        db.prepare(SWEEP).run(Date.now() - FENCE_MS);
        const { changes } = db.prepare(WRITE).run(key, value, token, Math.ceil(Date.now() + ttlMs));
        return Number(changes) === 1;
      });
      if (isWritten) return;
      const says = `The result of ${key} was not written: ${file.path} has one under a token newer than ${token}.`;
      throw new LockError('LOCK_LOST', says, { lockName: key, reason: 'taken-over' });
    },
  };
}
