import { DatabaseSync } from 'node:sqlite';
import type { OnceRecord } from '@locks/once';
import { entryOfRow, type SlotRow } from './sql-rows.ts';

const TIMEOUT_MS = 10_000;

/** The record in the table `once_slots` of the lock file: whoever deletes the file deletes the tokens and the record together. */
export function sqliteRecord(path: string): OnceRecord {
  return {
    async read(job) {
      return inFile(path, (db) => {
        const read = db.prepare('SELECT slot, state, token, label, at FROM once_slots WHERE job = ?');
        read.setReadBigInts(true);
        return entryOfRow(read.get(job) as unknown as SlotRow | undefined);
      });
    },
    async write(job, { slot, state, token, label, at }) {
      return inFile(path, (db) => {
        const { changes } = db
          .prepare(
            `INSERT INTO once_slots (job, slot, state, token, label, at) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
               label = excluded.label, at = excluded.at
             WHERE once_slots.token <= excluded.token`,
          )
          .run(job, slot, state, token, label, at);
        return Number(changes) === 1;
      });
    },
  };
}

function inFile<T>(path: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path);
  try {
    // Every commit is on the disk before it is answered.
    db.exec(`PRAGMA busy_timeout = ${TIMEOUT_MS}; PRAGMA synchronous = FULL`);
    db.exec(`CREATE TABLE IF NOT EXISTS once_slots (job TEXT PRIMARY KEY, slot TEXT NOT NULL, state TEXT NOT NULL,
      token INTEGER NOT NULL, label TEXT NOT NULL, at INTEGER NOT NULL)`);
    return work(db);
  } finally {
    db.close();
  }
}
