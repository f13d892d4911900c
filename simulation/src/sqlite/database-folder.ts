import { randomUUID } from 'node:crypto';
import { accessSync, constants, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk in memory, where the system has one. */
const IN_MEMORY = '/dev/shm';

let folder: string | undefined;

/** A path that no run has used: SQLite makes the file there. */
export function freshDatabasePath(): string {
  return join(memoryFolder(), `locks-simulation-${randomUUID()}.db`);
}

/** A folder in memory, where the system has one. */
export function memoryFolder(): string {
  return (folder ??= canWrite(IN_MEMORY) ? IN_MEMORY : tmpdir());
}

export function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(path + end, { force: true });
}

function canWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
