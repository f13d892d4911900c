import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { sqliteBackend } from '@locks/sqlite';
import type { Contender } from './contender.ts';
import { oursContender } from './locks.ts';

/** The memory backend, in one process: the cost of core alone. */
const locksMemory: Contender = oursContender({
  store: 'local',
  name: '@locks/memory',
  floor: '',
  packages: ['@locks/memory'],
  async openLocks(_url, ttlMs) {
    const locks = createLocks(memoryBackend(), { ttlMs });
    return { locks, ping: async () => {}, close: () => locks.close() };
  },
});

/** The SQLite backend, on one machine: `url` is the file. */
const locksSqlite: Contender = oursContender({
  store: 'local',
  name: '@locks/sqlite',
  floor: '',
  packages: ['@locks/sqlite'],
  async openLocks(path, ttlMs) {
    const locks = createLocks(sqliteBackend({ path }), { ttlMs });
    return { locks, ping: async () => {}, close: () => locks.close() };
  },
});

export const localContenders: readonly Contender[] = [locksMemory, locksSqlite];
