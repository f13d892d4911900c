import type { SlotStore, SlotEntry } from '@locks/core/backend';
import { fileOfRows } from './file-of-rows.ts';

const PREPARE = `PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS once_slots (job TEXT PRIMARY KEY, slot TEXT NOT NULL, state TEXT NOT NULL,
    token INTEGER NOT NULL, label TEXT NOT NULL, at INTEGER NOT NULL)`;
const WRITE = `INSERT INTO once_slots (job, slot, state, token, label, at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
    label = excluded.label, at = excluded.at
  WHERE once_slots.token <= excluded.token`;

type Row = Omit<SlotEntry, 'at'> & { readonly at: bigint };

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { sqliteBackend, sqliteSlots } from '@locks/sqlite';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a table of a SQLite file that all processes of
 * the machine share. Each call opens the file, has every write on the disk before it answers, and closes it. While another
 * process writes, a call blocks its thread, for 10 s at most; then it rejects with the error of `node:sqlite`.
 *
 * @param path - a file on a local disk, made when it is missing: the file of the locks, or another one
 * @example
 * ```ts
 * const path = './locks.db';
 * const locks = createLocks(sqliteBackend(path));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: sqliteSlots(path) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 *
 * @throws LockError `LOCK_UNSUPPORTED` before Node 22.13; `LOCK_INVALID_ARGUMENT` for a bad option.
 */
export function sqliteSlots(path: string): SlotStore {
  const file = fileOfRows('sqliteSlots()', path, PREPARE);
  return {
    async read(name) {
      return file.use((db) => {
        const read = db.prepare('SELECT slot, state, token, label, at FROM once_slots WHERE job = ?');
        // Tokens are beyond the range of exact numbers.
        read.setReadBigInts(true);
        const row = read.get(name) as unknown as Row | undefined;
        // A file has no clock: the time is that of this machine, which all its processes share.
        return { entry: row && { ...row, at: Number(row.at) }, storeTime: undefined };
      });
    },
    async write(name, { slot, state, token, label, at }) {
      return file.use(
        (db) => Number(db.prepare(WRITE).run(name, slot, state, token, label, at).changes) === 1,
      );
    },
  };
}
