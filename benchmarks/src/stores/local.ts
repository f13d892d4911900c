import { rmSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SQLITE_FILE } from '../contenders/clients.ts';
import { meterOf } from '../measure/meter.ts';
import type { Store } from './store.ts';

/** No server: a folder. What happens in it nobody counts. */
export const localStore: Store = {
  id: 'local',
  counting: 'nothing: there is no server',
  async start() {
    const folder = await mkdtemp(path.join(tmpdir(), 'locks-bench-'));
    // However this process ends.
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    return {
      url: folder,
      meter: meterOf({ read: async () => new Map(), ownOperations: 0 }),
      // Of SQLite alone: memory writes no file, and those of plain files are many small ones.
      storedBytes: () =>
        stat(path.join(folder, SQLITE_FILE)).then(
          ({ size }) => size,
          () => undefined,
        ),
      versions: { sqlite: process.versions['sqlite'] ?? 'unknown' },
      stop: () => rm(folder, { recursive: true, force: true }),
    };
  },
};
