import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineHarness } from '@locks/core/conformance';
import { sqliteBackend } from '@locks/sqlite';

/** One file in a folder of its own, which child processes find by the environment. From Node 22.13 on. */
export default defineHarness({
  module: import.meta.url,
  name: 'sqlite',
  async setup() {
    const folder = await mkdtemp(join(tmpdir(), 'locks-sqlite-'));
    return {
      env: { LOCKS_SMOKE_SQLITE_PATH: join(folder, 'locks.db') },
      teardown: () => rm(folder, { recursive: true, force: true }),
    };
  },
  createBackend: () => sqliteBackend({ path: process.env.LOCKS_SMOKE_SQLITE_PATH }),
  faults: {
    async evict(resource) {
      const { DatabaseSync } = await import('node:sqlite');
      const db = new DatabaseSync(process.env.LOCKS_SMOKE_SQLITE_PATH, { timeout: 5_000 });
      db.prepare('DELETE FROM holds WHERE resource = ?').run(Buffer.from(resource));
      db.close();
    },
  },
  timing: { ttlMs: 300, slackMs: 300, idleGapMs: 2_100 },
});
