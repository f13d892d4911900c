import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import { sqliteBackend } from '@locks/sqlite';

/** Opens locks of a file for a worker, as a `FaultLab` opens those of a server. */
export default class SqliteLab {
  locks(at: { readonly path: string }, options: LockOptions): LockManager {
    return createLocks(sqliteBackend(at.path), options);
  }
}
