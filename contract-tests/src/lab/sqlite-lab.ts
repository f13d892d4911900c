import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { sqliteBackend } from '@locks/sqlite';

/** Opens locks of a file for a worker, as a `FaultLab` opens those of a server. */
export default class SqliteLab {
  backend(at: { readonly path: string }): LockBackend {
    return sqliteBackend(at.path);
  }

  locks(at: { readonly path: string }, options: LockOptions): LockManager {
    return createLocks(this.backend(at), options);
  }
}
