import { resolve } from 'node:path';
import { LockError } from '@locks/core';

export interface SqliteBackendOptions {
  /**
   * The lock file, on a local disk, made when it is missing. Every process that shares locks names the same file.
   * SQLite keeps two more beside it, with `-wal` and `-shm` at the end of their names.
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
   * The longest pause in milliseconds between two looks at the file while somebody waits, 1 to 1000.
   *
   * @defaultValue 25
   */
  readonly maxPollMs?: number;
}

export interface CheckedOptions {
  readonly path: string;
  readonly synchronous: 'normal' | 'full';
  readonly maxPollMs: number;
}

const known = new Set(['path', 'synchronous', 'maxPollMs']);

export function checkOptions(options: SqliteBackendOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) {
    throw bad(`sqliteBackend() needs an object such as { path: './locks.db' }, not ${show(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw bad(`unknown option ${show(name)}: the options are ${[...known].join(', ')}`);
  }
  const { path, synchronous = 'normal', maxPollMs = 25 } = options;
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw bad(`path is ${show(path)}: it must be the path of a file that all processes share`);
  }
  if (path === ':memory:' || path.startsWith('file:')) {
    throw bad(`path is ${show(path)}: it must be a plain path; for locks of one process use @locks/memory`);
  }
  if (synchronous !== 'normal' && synchronous !== 'full') {
    throw bad(`synchronous is ${show(synchronous)}: it must be 'normal' or 'full'`);
  }
  if (typeof maxPollMs !== 'number' || !(maxPollMs >= 1 && maxPollMs <= 1000)) {
    throw bad(`maxPollMs is ${show(maxPollMs)}: it must be a number from 1 to 1000`);
  }
  // Resolved now: the process may change its folder before the file is opened.
  return { path: resolve(path), synchronous, maxPollMs };
}

function bad(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', `@locks/sqlite: ${message}`, { backend: 'sqlite' });
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
