import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { defineHarness } from '@locks/core/conformance';
import { sqliteBackend } from '@locks/sqlite';

const PATH_VARIABLE = 'LOCKS_SQLITE_PATH';
const BUSY_MS = 5_000;

/** A database file in a folder of its own, which child processes find by the environment. */
export default defineHarness({
  module: import.meta.url,
  name: 'sqlite',
  server: `SQLite ${process.versions['sqlite']}`,
  async setup() {
    const folder = await mkdtemp(join(tmpdir(), 'locks-sqlite-'));
    return {
      env: { [PATH_VARIABLE]: join(folder, 'locks.db') },
      teardown: () => rm(folder, { recursive: true, force: true }),
    };
  },
  createBackendUnder: 'none',
  createBackend: () => sqliteBackend(path()),
  faults: {
    // Locks the file as another program could.
    async cut() {
      const db = open();
      db.exec('BEGIN IMMEDIATE');
      return async () => {
        db.exec('ROLLBACK');
        db.close();
      };
    },
    async corrupt(resource) {
      const db = open();
      db.prepare(
        `INSERT INTO holds (resource, acquisition_id, kind, weight, permits, token, granted_at, expires_at, ttl, label)
         VALUES (?, 'of another program', 99, -1, -1, 1, 1, 1e15, 1e15, NULL)`,
      ).run(Buffer.from(resource));
      db.close();
    },
    async evict(resource) {
      const db = open();
      db.prepare('DELETE FROM holds WHERE resource = ?').run(Buffer.from(resource));
      db.close();
    },
  },
  // A process that stands still is passed over after two seconds.
  timing: { ttlMs: 300, slackMs: 300, idleGapMs: 2_100 },
});

function path(): string {
  return process.env[PATH_VARIABLE] as string;
}

/** Runs SQL as an administrator would, on a connection of its own. */
function open(): DatabaseSync {
  return new DatabaseSync(path(), { timeout: BUSY_MS });
}
