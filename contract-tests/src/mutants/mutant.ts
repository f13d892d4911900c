import type { Lease, Lock, LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';

/**
 * A backend or core that is broken on purpose, which the suite must notice. What a mutant does not change is left as it is; its functions give
 * the changed members, or a whole other object.
 */
export interface Mutant {
  /** A unique name in kebab-case. */
  readonly name: string;
  /** The fault, in one sentence. */
  readonly says: string;
  /**
   * The backend that the mutant changes: memory for most; SQLite for faults between processes; memory behind TCP for faults on
   * the wire; cohorts over memory for faults of cohorts; the other two for tenure `session`. @defaultValue 'memory'
   */
  readonly host?: Host;
  /** The ids of the cases that must fail; others may. */
  readonly expected: readonly string[];
  /** Changes the behaviour of a backend. */
  readonly backend?: (backend: LockBackend) => Partial<LockBackend>;
  /** Changes the calls of core to a backend and their answers, between core and every wrapper of a case. */
  readonly calls?: (backend: LockBackend) => Partial<LockBackend>;
  /** Changes the behaviour of core for its users: of managers, of their locks, and of the leases of these. */
  readonly locks?: (locks: LockManager) => Partial<LockManager>;
  readonly lock?: (lock: Lock, name: string) => Partial<Lock>;
  readonly lease?: (lease: Lease, locks: LockManager) => Partial<Lease>;
}

export type Host = 'memory' | 'cohort-memory' | 'memory-tcp' | 'sqlite' | 'session-memory' | 'session-sqlite';

/** A mutant as its host is changed by it. */
export interface PlantedMutant extends Pick<Mutant, 'name' | 'says' | 'expected'> {
  readonly host: Host;
  readonly backend: (backend: LockBackend) => LockBackend;
  readonly calls: (backend: LockBackend) => LockBackend;
  readonly locks: (locks: LockManager) => LockManager;
}
