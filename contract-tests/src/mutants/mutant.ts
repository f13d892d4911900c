import type { LockBackend, LockManager } from '@locks/core';

/** A backend or core that is broken on purpose, which the suite must notice. */
export interface Mutant {
  /** A unique name in kebab-case. */
  readonly name: string;
  /** The fault, in one sentence. */
  readonly says: string;
  /**
   * The backend that the mutant changes: memory for most; SQLite for faults between processes; memory behind TCP for faults on
   * the wire; cohorts over memory for faults of cohorts; the other two for tenure `session`.
   */
  readonly host: 'memory' | 'cohort-memory' | 'memory-tcp' | 'sqlite' | 'session-memory' | 'session-sqlite';
  /** The ids of the cases that must fail; others may. */
  readonly expected: readonly string[];
  /** Changes the behaviour of a backend. */
  readonly backend?: (backend: LockBackend) => LockBackend;
  /** Changes the calls of core to a backend and their answers, between core and every wrapper of a case. */
  readonly calls?: (backend: LockBackend) => LockBackend;
  /** Changes the behaviour of core for its users. */
  readonly locks?: (locks: LockManager) => LockManager;
}
