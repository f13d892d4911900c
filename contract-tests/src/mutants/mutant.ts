import type { LockBackend, LockManager } from '@locks/core';

/** A backend, or a core, that is broken on purpose: the suite must notice. */
export interface Mutant {
  /** Kebab-case, unique. */
  readonly name: string;
  /** What is broken, in one sentence. */
  readonly says: string;
  /** Memory hosts most; SQLite those that need several processes; the other two those of tenure `session`. */
  readonly host: 'memory' | 'sqlite' | 'session-memory' | 'session-sqlite';
  /** Ids of cases that must fail; others may. */
  readonly expected: readonly string[];
  /** Breaks what a backend does. */
  readonly backend?: (backend: LockBackend) => LockBackend;
  /**
   * Breaks what core says to a backend, and what it hears: applied in `createLocks`, above whatever a case puts between
   * core and the backend.
   */
  readonly calls?: (backend: LockBackend) => LockBackend;
  /** Breaks what core does for its users. */
  readonly locks?: (locks: LockManager) => LockManager;
}
