import { LockError } from '@locks/core';

export type SqliteModule = typeof import('node:sqlite');

let loaded: SqliteModule | undefined;

/**
 * Node's own SQLite, loaded when it is first needed, so that this package can be imported where it does not exist.
 *
 * @throws LockError `LOCK_UNSUPPORTED` on a Node without `node:sqlite`.
 */
export function loadSqlite(): SqliteModule {
  loaded ??= withoutExperimentalWarning(() => process.getBuiltinModule?.('node:sqlite'));
  if (loaded === undefined) {
    throw new LockError(
      'LOCK_UNSUPPORTED',
      `@locks/sqlite needs node:sqlite, which Node has from version 22.13 on; this is ${process.version}. ` +
        'Upgrade Node, or choose another backend.',
      { backend: 'sqlite' },
    );
  }
  return loaded;
}

/**
 * Loads without the warning by which Node 22 announces node:sqlite as experimental. Users of this package have chosen it, so
 * that one notice is withheld: for the length of this synchronous call only, during which nothing else can run.
 */
function withoutExperimentalWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' && String(warning).includes('SQLite')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
