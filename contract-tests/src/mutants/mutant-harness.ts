/**
 * The harness of the mutant that `LOCKS_MUTANT` names, for the process that judges it and for the children of that process.
 * Without the variable, or with the name of a host, it is the host without a mutation.
 */
import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { defineHarness, type Harness } from '@locks/core/conformance';
import cohortMemory from '../harnesses/cohort-memory.ts';
import memory from '../harnesses/memory.ts';
import memoryTcp from '../harnesses/memory-tcp.ts';
import sessionMemory from '../harnesses/session-memory.ts';
import sessionSqlite from '../harnesses/session-sqlite.ts';
import sqlite from '../harnesses/sqlite.ts';
import { mutants } from './index.ts';
import type { Host } from './mutant.ts';

export const MUTANT_VARIABLE = 'LOCKS_MUTANT';

export const hosts: Readonly<Record<Host, Harness>> = {
  memory,
  'cohort-memory': cohortMemory,
  'memory-tcp': memoryTcp,
  sqlite,
  'session-memory': sessionMemory,
  'session-sqlite': sessionSqlite,
};

const named = process.env[MUTANT_VARIABLE] ?? 'memory';
const mutant = mutants.find(({ name }) => name === named);
const host = hosts[mutant?.host ?? (named as Host)];

const { wire, onOwnClient } = host.faults ?? {};

export default defineHarness({
  ...host,
  module: import.meta.url,
  name: named,
  createBackend: async () => mutated(await host.createBackend()),
  faults: {
    ...host.faults,
    ...(onOwnClient && {
      async onOwnClient() {
        const own = await onOwnClient();
        return { ...own, backend: mutated(own.backend) };
      },
    }),
    ...(wire && {
      wire: { ...wire, createBackend: async (proxies) => mutated(await wire.createBackend(proxies)) },
    }),
  },
  createLocks: mutatedCreateLocks as unknown as typeof createLocks,
});

function mutated(backend: LockBackend): LockBackend {
  return mutant?.backend(backend) ?? backend;
}

function mutatedCreateLocks(backend: LockBackend, options?: LockOptions): LockManager {
  const locks: LockManager = createLocks(mutant?.calls(backend) ?? backend, options);
  return mutant?.locks(locks) ?? locks;
}
