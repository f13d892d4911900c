import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { sqliteBackend } from '@locks/sqlite';
import type { Contender } from './contender.ts';
import { oursContender } from './locks.ts';

/** In one process: what core alone costs. */
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

/** On one machine: `url` is the file. */
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
