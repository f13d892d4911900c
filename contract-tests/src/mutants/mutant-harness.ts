/**
 * The harness of the mutant that `LOCKS_MUTANT` names, for the process that judges it and for the children which that
 * process starts. Without the variable, or with a host's name: the host as it is.
 */
import { createLocks, type LockBackend, type LockManager, type LockOptions } from '@locks/core';
import { defineHarness, type Harness } from '@locks/core/conformance';
import memory from '../harnesses/memory.ts';
import sessionMemory from '../harnesses/session-memory.ts';
import sessionSqlite from '../harnesses/session-sqlite.ts';
import sqlite from '../harnesses/sqlite.ts';
import { mutants } from './index.ts';
import type { Mutant } from './mutant.ts';

export const MUTANT_VARIABLE = 'LOCKS_MUTANT';

export const hosts: Readonly<Record<Mutant['host'], Harness>> = {
  memory,
  sqlite,
  'session-memory': sessionMemory,
  'session-sqlite': sessionSqlite,
};

const named = process.env[MUTANT_VARIABLE] ?? 'memory';
const mutant = mutants.find(({ name }) => name === named);
const host = hosts[mutant?.host ?? (named as Mutant['host'])];

export default defineHarness({
  ...host,
  module: import.meta.url,
  name: named,
  createBackend: async () => {
    const backend = await host.createBackend();
    return mutant?.backend?.(backend) ?? backend;
  },
  createLocks: mutatedCreateLocks as unknown as typeof createLocks,
});

function mutatedCreateLocks(backend: LockBackend, options?: LockOptions): LockManager {
  const locks: LockManager = createLocks(mutant?.calls?.(backend) ?? backend, options);
  return mutant?.locks?.(locks) ?? locks;
}
