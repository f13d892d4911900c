import type { DatabaseSync } from 'node:sqlite';
import { type OnceRecord, readOptions, type SlotEntry } from '@locks/core/backend';
import { loadSqlite } from './load-sqlite.ts';
import { filePath, plainPath } from './options.ts';

/** The options of `sqliteRecord`. */
export interface SqliteRecordOptions {
  /** A file on a local disk, made when it is missing: the file of the locks, or another one. The table `once_slots` is made in it. */
  readonly path: string;
}

/** The time that SQLite waits for another process that writes. */
const BUSY_MS = 10_000;
const PREPARE = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS once_slots (job TEXT PRIMARY KEY, slot TEXT NOT NULL, state TEXT NOT NULL,
    token INTEGER NOT NULL, label TEXT NOT NULL, at INTEGER NOT NULL)`;
const WRITE = `INSERT INTO once_slots (job, slot, state, token, label, at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
    label = excluded.label, at = excluded.at
  WHERE once_slots.token <= excluded.token`;

type Row = Omit<SlotEntry, 'at'> & { readonly at: bigint };

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { sqliteBackend, sqliteRecord } from '@locks/sqlite';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: a table of a SQLite file that all processes of
 * the machine share. Each call opens the file, has every write on the disk before it answers, and closes it. While another
 * process writes, a call blocks its thread, for 10 s at most; then it rejects with the error of `node:sqlite`.
 *
 * @example
 * ```ts
 * const path = './locks.db';
 * const locks = createLocks(sqliteBackend({ path }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', record: sqliteRecord({ path }) } as const;
 * await once(locks, 'invoices', options, ({ fencingToken }) => sendInvoices(fencingToken));
 * ```
 *
 * @throws LockError `LOCK_UNSUPPORTED` before Node 22.13; `LOCK_INVALID_ARGUMENT` for a bad option.
 */
export function sqliteRecord(options: SqliteRecordOptions): OnceRecord {
  const path = plainPath('sqliteRecord()', readOptions('sqliteRecord()', options, { path: filePath }).path);
  const { DatabaseSync } = loadSqlite();
  const inFile = <T>(work: (db: DatabaseSync) => T): T => {
    const db = new DatabaseSync(path);
    try {
      db.exec(PREPARE);
      return work(db);
    } finally {
      db.close();
    }
  };
  return {
    async read(job) {
      return inFile((db) => {
        const read = db.prepare('SELECT slot, state, token, label, at FROM once_slots WHERE job = ?');
        // Tokens are beyond the range of exact numbers.
        read.setReadBigInts(true);
        const row = read.get(job) as unknown as Row | undefined;
        return row && { ...row, at: Number(row.at) };
      });
    },
    async write(job, { slot, state, token, label, at }) {
      return inFile((db) => Number(db.prepare(WRITE).run(job, slot, state, token, label, at).changes) === 1);
    },
  };
}
