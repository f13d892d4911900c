import type { loadSqlite } from '../../../packages/sqlite/src/load-sqlite.ts';
import type { openLockFile } from '../../../packages/sqlite/src/lock-file.ts';
import type { machineClock } from '../../../packages/sqlite/src/machine-clock.ts';

/** How `@locks/sqlite` opens its file, which the simulator does too, for other processes. */
export interface SqliteCode {
  readonly loadSqlite: typeof loadSqlite;
  readonly openLockFile: typeof openLockFile;
  readonly machineClock: typeof machineClock;
}
