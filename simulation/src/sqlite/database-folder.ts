import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk in memory, where the system has one. */
const IN_MEMORY = '/dev/shm';

let folder: string | undefined;
let files = 0;

/** A path that no run has used: SQLite makes the file there. */
export function freshDatabasePath(): string {
  folder ??= makeFolder();
  files += 1;
  return join(folder, `${files}.db`);
}

export function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(path + end, { force: true });
}

function makeFolder(): string {
  const made = [IN_MEMORY, tmpdir()].map(tryMake).find((path) => path !== undefined);
  if (made === undefined) throw new Error(`no folder can be made in ${tmpdir()}`);
  process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  return made;
}

function tryMake(parent: string): string | undefined {
  try {
    return mkdtempSync(join(parent, 'locks-simulation-'));
  } catch {
    return undefined;
  }
}
