import type { LockBackend, LockManager } from '@locks/core';

/** A backend, or a core, that is broken on purpose: the suite must notice. */
export interface Mutant {
  /** Kebab-case, unique. */
  readonly name: string;
  /** What is broken, in one sentence. */
  readonly says: string;
  /** Memory hosts most; SQLite those that need several processes. */
  readonly host: 'memory' | 'sqlite';
  /** Ids of cases that must fail; others may. */
  readonly expected: readonly string[];
  /** Breaks what a backend does. */
  readonly backend?: (backend: LockBackend) => LockBackend;
  /** Breaks what core does. */
  readonly locks?: (locks: LockManager) => LockManager;
}
