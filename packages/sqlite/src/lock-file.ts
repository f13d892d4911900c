import { accessSync, type BigIntStats, constants, realpathSync, statSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type MachineClock, removeWakeFile } from '@locks/core/machine';
import { needsRollback, SqliteFileError } from './file-error.ts';
import { sql } from './generated/sql.ts';
import type { SqliteModule } from './load-sqlite.ts';
import type { CheckedSqliteOptions } from './options.ts';

/** "LOCK" in ASCII: marks the files of this package. */
const APPLICATION_ID = 0x4c4f434b;
const SCHEMA_VERSION = 1;
/** Clocks of one boot agree to far less than this. */
const CLOCK_SLACK_MICROS = 1_000_000;

export type SqliteStatements = Record<keyof typeof sql, StatementSync> & {
  readonly begin: StatementSync;
  readonly beginRead: StatementSync;
  readonly commit: StatementSync;
  readonly rollback: StatementSync;
  readonly dataVersion: StatementSync;
};

/** The open file of one backend object: a connection and its prepared statements. */
export interface LockFile {
  readonly path: string;
  /** The path without symbolic links. */
  readonly realPath: string;
  readonly clock: MachineClock;
  readonly statements: SqliteStatements;
  /** Whether the path still names the file that is open: someone may have deleted or replaced it. */
  isInPlace(): boolean;
  close(): void;
}

/**
 * Opens the file, makes it if it is missing, and refuses one of another application. Every step may find the file busy
 * and throw: the caller calls again later, from the start.
 */
export function openLockFile(
  sqlite: SqliteModule,
  options: CheckedSqliteOptions,
  clock: MachineClock,
): LockFile {
  const { path } = options;
  refuseForeignFile(sqlite, path);
  const db = new sqlite.DatabaseSync(path, { timeout: 0 });
  try {
    // SQLite must not wait by itself: that would block the event loop.
    db.exec('PRAGMA busy_timeout = 0; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY');
    createSchema(db, path);
    useWriteAheadLog(db, path);
    db.exec(`PRAGMA synchronous = ${options.synchronous}; PRAGMA journal_size_limit = 4194304`);
    // SQLite, too, keeps its files beside the real one, whatever link names it.
    const realPath = realpathSync(path);
    adoptBoot(db, realPath, clock);
    const opened = statSync(path, { bigint: true });
    return {
      path,
      realPath,
      clock,
      statements: prepareAll(db),
      isInPlace: () => isSameFile(path, opened),
      close: () => db.close(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Checks an existing file through a read-only connection, so that a foreign one is not even recovered or
 * checkpointed. (Never with `fs`: closing any descriptor of the file would drop this process's SQLite locks on it.)
 */
function refuseForeignFile(sqlite: SqliteModule, path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.isFile() && stats.nlink > 1) {
    // SQLite keeps a log beside each name: processes that use two names would write over each other.
    throw new SqliteFileError(
      'CANNOT_OPEN',
      `lock file ${path}: the file has ${stats.nlink} names (hard links), and SQLite needs one. Delete the others; use a symbolic link`,
    );
  }
  if (stats.size === 0) return;
  if (!stats.isFile()) {
    throw new SqliteFileError(
      'CANNOT_OPEN',
      `lock file ${path}: this is not a file. Name a file inside a folder`,
    );
  }
  refuseReadOnlyFile(path);
  const db = new sqlite.DatabaseSync(path, { readOnly: true, timeout: 0 });
  try {
    identify(db, path);
  } catch (error) {
    // The last user of the file was killed in the middle of a commit: only a writer can identify it, after rolling back.
    if (!needsRollback(error)) throw error;
  } finally {
    db.close();
  }
}

/** Refuses a read-only file: SQLite itself would notice only when the first lock is granted. */
function refuseReadOnlyFile(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (cause) {
    throw new SqliteFileError(
      'READ_ONLY',
      `lock file ${path}: it cannot be written: check the permissions of the file and of its folder`,
      { cause },
    );
  }
}

/** Returns whether the file is ours, or empty and so may become ours, as of one moment: another process may be making it. */
function identify(db: DatabaseSync, path: string): 'ours' | 'empty' {
  return inTransaction(db, 'BEGIN', () => checkIdentity(db, path));
}

function checkIdentity(db: DatabaseSync, path: string): 'ours' | 'empty' {
  const id = readPragma(db, 'application_id');
  const version = readPragma(db, 'user_version');
  if (id === APPLICATION_ID) {
    if (version === SCHEMA_VERSION) return 'ours';
    const isOlder = version < SCHEMA_VERSION;
    throw new SqliteFileError(
      isOlder ? 'OLDER_SCHEMA' : 'NEWER_SCHEMA',
      `lock file ${path}: its schema is version ${version}, this package knows ${SCHEMA_VERSION}. ${
        isOlder
          ? 'Stop all processes of the older version, then delete the file'
          : 'Upgrade @locks/sqlite in this process'
      }, or choose another path`,
    );
  }
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n;
  if (id === 0 && version === 0 && tables === 0) return 'empty';
  throw new SqliteFileError(
    'FOREIGN_FILE',
    `lock file ${path}: it is the database of another application (application_id ${id}, user_version ${version}, ` +
      `${tables} schema entries). Choose another path; the file was not touched`,
  );
}

/** Creates the schema, before the switch to WAL, so that the main file's header identifies it from the first commit on. */
function createSchema(db: DatabaseSync, path: string): void {
  if (identify(db, path) === 'ours') return;
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    // The file is checked again under the lock: another process may have made it meanwhile.
    if (checkIdentity(db, path) === 'ours') return;
    db.exec(sql.schema1);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
  });
}

function useWriteAheadLog(db: DatabaseSync, path: string): void {
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  if (mode === 'wal') return;
  throw new SqliteFileError(
    'CANNOT_OPEN',
    `lock file ${path}: SQLite cannot use write-ahead logging here (journal mode ${mode}). Use a local disk`,
  );
}

/** Removes the rows of an earlier boot: their processes ended with the machine. */
function adoptBoot(db: DatabaseSync, realPath: string, clock: MachineClock): void {
  const removeWakeFiles = (rows: readonly Readonly<Record<string, unknown>>[]): void => {
    for (const { client } of rows) removeWakeFile(realPath, Number(client));
  };
  const readBoot = db.prepare('SELECT boot FROM state');
  if (readBoot.get()?.boot === clock.boot && clock.bootIsExact) return;
  inTransaction(db, 'BEGIN IMMEDIATE', () => {
    const boot = readBoot.get()?.boot;
    if (boot !== clock.boot) {
      db.exec('DELETE FROM holds; DELETE FROM waiters');
      removeWakeFiles(db.prepare('DELETE FROM clients RETURNING client').all());
      db.prepare(sql.adoptState).run(clock.boot);
    } else if (!clock.bootIsExact) {
      const now = clock.nowMicros();
      db.prepare(sql.dropImpossibleHolds).run(now, CLOCK_SLACK_MICROS);
      removeWakeFiles(db.prepare(sql.dropImpossibleClients).all(now + 10 * CLOCK_SLACK_MICROS));
      db.prepare(sql.dropOrphanWaiters).run();
    }
  });
}

function inTransaction<T>(db: DatabaseSync, begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T {
  db.exec(begin);
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    rollBack(() => db.exec('ROLLBACK'));
    throw error;
  }
}

/** Rolls back, unless the failure (a full disk) has done so already. */
export function rollBack(rollback: () => unknown): void {
  try {
    rollback();
  } catch {
    // No transaction is open any more.
  }
}

function readPragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}

function isSameFile(path: string, opened: BigIntStats): boolean {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats !== undefined && stats.ino === opened.ino && stats.dev === opened.dev;
}

function prepareAll(db: DatabaseSync): SqliteStatements {
  const { schema1: _schema, ...texts } = sql;
  const all = {
    ...texts,
    begin: 'BEGIN IMMEDIATE',
    beginRead: 'BEGIN',
    commit: 'COMMIT',
    rollback: 'ROLLBACK',
    dataVersion: 'PRAGMA data_version',
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, text]) => [name, db.prepare(text)]),
  ) as unknown as SqliteStatements;
}
