import { resolve } from 'node:path';
import {
  matching,
  milliseconds,
  mustBe,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';

/** The options of `sqliteBackend`. */
export interface SqliteBackendOptions {
  /**
   * The lock file, on a local disk, made when it is missing. Every process that shares locks names the same file.
   * SQLite keeps two more beside it, with `-wal` and `-shm` at the end of their names, and each process that waits one with
   * `-wake-` and a number.
   */
  readonly path: string;
  /**
   * `normal`: state survives killed processes; after a power cut the fencing token goes on from the wall clock.
   * `full`: every commit is on the disk before it is answered.
   *
   * @defaultValue `'normal'`
   */
  readonly synchronous?: 'normal' | 'full';
  /**
   * The longest pause in milliseconds between two polls of the file while somebody waits, 1 to 1000, where processes cannot wake
   * each other. Where they can, they poll twice a second.
   *
   * @defaultValue 25
   */
  readonly maxPollMs?: number;
}

export interface CheckedSqliteOptions {
  readonly path: string;
  readonly synchronous: 'normal' | 'full';
  readonly maxPollMs: number;
}

export const filePath = matching('the path of a file that all processes share', isPath);

const TABLE = {
  path: filePath,
  synchronous: optional(oneOf('normal', 'full'), 'normal'),
  maxPollMs: optional(milliseconds(1, 1_000), 25),
} satisfies OptionTable<SqliteBackendOptions>;

export function checkOptions(options: SqliteBackendOptions): CheckedSqliteOptions {
  const { path, ...others } = readOptions('sqliteBackend()', options, TABLE);
  return { path: plainPath('sqliteBackend()', path), ...others };
}

/** The absolute path: the process may change its folder before the file is opened. */
export function plainPath(caller: string, path: string): string {
  if (path === ':memory:' || path.startsWith('file:')) {
    throw mustBe(`${caller}: path`, 'a plain path (for locks of one process use @locks/memory)', path);
  }
  return resolve(path);
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}
