import { DatabaseSync } from 'node:sqlite';
import type { OnceRecord, SlotEntry } from '@locks/once';

const TABLE = `CREATE TABLE IF NOT EXISTS once_slots (
  job varchar(255) PRIMARY KEY, slot varchar(255) NOT NULL, state varchar(5) NOT NULL,
  token bigint NOT NULL, label varchar(255) NOT NULL, at bigint NOT NULL)`;

type Row = Omit<SlotEntry, 'token' | 'at'> & { readonly token: bigint; readonly at: bigint };

/** The record of docs/once-per-slot.md in a SQLite file, which several processes may use. */
export function sqliteRecord(path: string): OnceRecord {
  return {
    async read(job) {
      using db = open(path);
      const read = db.prepare('SELECT * FROM once_slots WHERE job = ?');
      // Tokens are beyond what a number holds exactly.
      read.setReadBigInts(true);
      const row = read.get(job) as Row | undefined;
      return row && { ...row, at: Number(row.at) };
    },
    async write(job, { slot, state, token, label, at }) {
      using db = open(path);
      const { changes } = db
        .prepare(
          `INSERT INTO once_slots (job, slot, state, token, label, at) VALUES (?, ?, ?, ?, ?, ?)
           ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
             label = excluded.label, at = excluded.at
           WHERE once_slots.token <= excluded.token`,
        )
        .run(job, slot, state, token, label, at);
      return Number(changes) === 1;
    },
  };
}

function open(path: string): DatabaseSync & Disposable {
  const db = new DatabaseSync(path, { timeout: 20_000 });
  db.exec(TABLE);
  return Object.assign(db, { [Symbol.dispose]: () => db.close() });
}
