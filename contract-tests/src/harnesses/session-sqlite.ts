import { defineHarness } from '@locks/core/conformance';
import { SessionBackend, sessionBackendOf } from '../fixtures/session-backend.ts';
import sqlite from './sqlite.ts';

/** A fixture: the SQLite backend with tenure `session`, which tests the cases about sessions in several processes. */
export default defineHarness({
  ...sqlite,
  module: import.meta.url,
  name: 'session-sqlite',
  createBackendUnder: 'none',
  createBackend: async () => new SessionBackend(await sqlite.createBackend(), 'session-sqlite'),
  faults: {
    ...sqlite.faults,
    endSession: (backend) => sessionBackendOf(backend).endSession(),
  },
});
