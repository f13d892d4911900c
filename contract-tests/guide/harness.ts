import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { defineHarness } from '@locks/core/conformance';
import { tableBackend } from './table-backend.ts';

const path = () => process.env['TABLE_BACKEND'] ?? '';

export default defineHarness({
  module: import.meta.url, // child processes load this module
  createBackend: () => tableBackend(path()),
  createBackendUnder: 'none',
  async setup() {
    const folder = mkdtempSync(join(tmpdir(), 'table-backend-'));
    const teardown = async () => rmSync(folder, { recursive: true });
    return { env: { TABLE_BACKEND: join(folder, 'locks.db') }, teardown };
  },
  faults: {
    async evict(resource) {
      const database = new DatabaseSync(path(), { timeout: 1_000 });
      database.prepare('DELETE FROM leases WHERE name = ?').run(Buffer.from(resource));
      database.close();
    },
    async cut() {
      const database = new DatabaseSync(path(), { timeout: 1_000 });
      database.exec('BEGIN EXCLUSIVE'); // blocks all other clients
      return async () => database.close();
    },
    corrupt: 'none', // the columns have types
  },
});
