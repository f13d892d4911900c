import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineHarness } from '@locks/core/conformance';
import { sqliteBackend } from '@locks/sqlite';

/** One file in a folder of its own, which child processes find by the environment. */
export default defineHarness({
  module: import.meta.url,
  name: 'sqlite',
  server: `SQLite ${process.versions['sqlite']}`,
  async setup() {
    const folder = await mkdtemp(join(tmpdir(), 'locks-sqlite-'));
    return {
      env: { LOCKS_SQLITE_PATH: join(folder, 'locks.db') },
      teardown: () => rm(folder, { recursive: true, force: true }),
    };
  },
  createBackend: () => sqliteBackend({ path: process.env['LOCKS_SQLITE_PATH'] as string }),
  // A process that stands still is passed over after two seconds.
  timing: { ttlMs: 300, slackMs: 300, idleGapMs: 2_100 },
});
