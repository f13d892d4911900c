import type { DatabaseSync } from 'node:sqlite';
import { loadSqlite } from './load-sqlite.ts';
import { plainPath } from './options.ts';

/** The time that SQLite waits for another process that writes. */
const BUSY_MS = 10_000;

/** A file that is opened for each use, and closed after it. */
export interface FileOfRows {
  readonly path: string;
  use<T>(work: (db: DatabaseSync) => T): T;
}

/**
 * Checks the argument of a function that keeps rows in a file.
 *
 * @param what - the function that the user called, for messages: `sqliteSlots()`
 * @param prepare - statements that are run at each opening: they make the table
 */
export function fileOfRows(what: string, given: string, prepare: string): FileOfRows {
  const path = plainPath(what, given);
  const { DatabaseSync } = loadSqlite();
  return {
    path,
    use(work) {
      const db = new DatabaseSync(path);
      try {
        db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; ${prepare}`);
        return work(db);
      } finally {
        db.close();
      }
    },
  };
}
