import { resolve } from 'node:path';
import {
  milliseconds,
  mustBe,
  oneOf,
  optional,
  type OptionTable,
  readClient,
  readOptions,
} from '@locks/core/backend';

/** The options of `sqliteBackend`. */
export interface SqliteBackendOptions {
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

const TABLE = {
  synchronous: optional(oneOf('normal', 'full'), 'normal'),
  maxPollMs: optional(milliseconds(1, 1_000), 25),
} satisfies OptionTable<SqliteBackendOptions>;

const ELSEWHERE = { path: 'the first argument' };

export function checkOptions(
  path: unknown,
  options: SqliteBackendOptions | undefined,
  caller = 'sqliteBackend()',
): CheckedSqliteOptions {
  return { path: plainPath(caller, path), ...readOptions(caller, options, TABLE, ELSEWHERE) };
}

/** The absolute path: the process may change its folder before the file is opened. */
export function plainPath(caller: string, given: unknown): string {
  const path = readClient(caller, 'path', given, 'the path of a file that all processes share', isPath);
  if (path === ':memory:' || path.startsWith('file:')) {
    throw mustBe(`${caller}: the path`, 'a plain path (for locks of one process use @locks/memory)', path);
  }
  return resolve(path);
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}
