import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The kind of failure of the lock file. */
export type SqliteFileErrorCode =
  /** Other processes kept the file busy until the deadline of the call. */
  | 'BUSY'
  /** The disk, its quota or the file's size limit is full. */
  | 'FULL'
  /** The file, its folder or the file system cannot be written. */
  | 'READ_ONLY'
  /** The file cannot be made or opened: no such folder, a folder at its path, no permission, several hard links. */
  | 'CANNOT_OPEN'
  /** The file is another application's database, or no database at all. It was not touched. */
  | 'FOREIGN_FILE'
  /** The file was made by a newer version of this package. */
  | 'NEWER_SCHEMA'
  /** The file was made by an older version of this package, whose processes may still run. */
  | 'OLDER_SCHEMA'
  /** SQLite found the file damaged. */
  | 'CORRUPT'
  /** Two machines use one file. */
  | 'TWO_MACHINES'
  /** The system does not say which boot this is. */
  | 'NO_BOOT_ID'
  /** Anything else that SQLite reports. */
  | 'FAILED';

/** A failure of the lock file, explained in words; `cause` is SQLite's own error. */
export class SqliteFileError extends Error {
  override readonly name = 'SqliteFileError';
  /** The kind of failure of the file. */
  readonly code: SqliteFileErrorCode;

  constructor(code: SqliteFileErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

// https://sqlite.org/rescode.html: the low byte is the primary code.
const PERM = 3;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const PROTOCOL = 15;
const NOTADB = 26;
const IOERR_SHORT_WRITES = new Set([778, 1034, 1546, 4874]); // write, fsync, truncate, shm size

function primaryCode(error: unknown): number | undefined {
  const errcode = (error as { errcode?: unknown } | null)?.errcode;
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

/** Whether another process has the file at this moment: BUSY, BUSY_SNAPSHOT, BUSY_RECOVERY, LOCKED, a race of locks. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED || code === PROTOCOL;
}

type Explain = (code: SqliteFileErrorCode, text: string) => SqliteFileError;

function explainCannotOpen(path: string, explain: Explain): SqliteFileError {
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    return explain('CANNOT_OPEN', `there is no folder ${folder}. Make it, or choose another path`);
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    return explain('CANNOT_OPEN', 'this is a folder. Name a file inside it');
  }
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    return explain(
      'READ_ONLY',
      `its folder ${folder} cannot be written by this process; SQLite keeps files there`,
    );
  }
  return explain('CANNOT_OPEN', 'it cannot be opened: check its permissions, and the limit of open files');
}

/** SQLITE_READONLY_ROLLBACK: a read-only connection met a journal that must be rolled back first. */
export function needsRollback(error: unknown): boolean {
  return (error as { errcode?: unknown } | null)?.errcode === 776;
}

/** Explains a failure, with the path and a remedy. */
export function explainFailure(path: string, error: unknown): unknown {
  const code = primaryCode(error);
  if (code === undefined) return error;
  const explain: Explain = (name, text) =>
    new SqliteFileError(name, `lock file ${path}: ${text}`, { cause: error });

  const { errcode, errstr } = error as { errcode: number; errstr?: string };
  switch (code) {
    case BUSY:
    case LOCKED:
    case PROTOCOL:
      return explain('BUSY', 'other processes kept it busy until the deadline of this call');
    case FULL:
      return explain('FULL', 'it cannot grow: the disk, its quota or a size limit is full. Free some space');
    case READONLY:
    case PERM:
      return explain(
        'READ_ONLY',
        'it cannot be written: check the permissions of the file and of its folder',
      );
    case CANTOPEN:
      return explainCannotOpen(path, explain);
    case CORRUPT:
      return explain('CORRUPT', 'SQLite finds it damaged. Stop all its users, delete it, start them again');
    case NOTADB:
      return explain(
        'FOREIGN_FILE',
        'it is not an SQLite database. Choose another path; the file was not touched',
      );
    case IOERR:
      return IOERR_SHORT_WRITES.has(errcode)
        ? explain(
            'FULL',
            `it cannot be written (SQLite error ${errcode}): the disk is probably full or failing`,
          )
        : explain('FAILED', `input/output error (SQLite error ${errcode})`);
    default:
      return explain('FAILED', `${errstr ?? 'SQLite error'} (SQLite error ${errcode}): ${String(error)}`);
  }
}

/** Whether the same call may succeed if repeated: only a busy file may be free at the next try. */
export function isRetryableFileError(error: unknown): boolean {
  return error instanceof SqliteFileError && error.code === 'BUSY';
}
