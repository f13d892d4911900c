import type { DatabaseSyncOptions } from 'node:sqlite';

/** What a process finds on the machine that it shares with others, where it uses files. */
export interface ProcessMachine {
  readonly platform: 'linux' | 'win32';
  /** The calls of `node:fs` that the code of the processes makes. */
  readonly fs: object;
  /** A connection, as `DatabaseSync` of `node:sqlite` is one. */
  openDatabase(options: DatabaseSyncOptions): object;
  /** As `process.hrtime.bigint()` gives it. */
  hrtime(): bigint;
  /** `process.kill(pid, 0)`: fails where no such process runs, as far as this one sees. */
  signal(pid: number): true;
  /** The system takes back what the process had. */
  ended(): void;
}
