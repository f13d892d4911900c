/**
 * The severity of a finding. `error`: locks fail, or two may hold one, while everything works as it is set up. `warning`: locks
 * may be lost after a crash, a power cut or a failover, or are granted late. `unknown`: this user may not find out.
 */
export type Severity = 'error' | 'warning' | 'unknown';

/** Something about a store that would break locks or slow them. */
export interface Finding {
  /** The identifier, the same in all versions: `redis/eviction`. */
  readonly id: string;
  /** How much it matters. */
  readonly severity: Severity;
  /** What was found. */
  readonly what: string;
  /** The advice how to solve the problem. */
  readonly toDo: string;
}

/** The findings about one store. */
export interface Diagnosis {
  /** The name of the store: `redis`. */
  readonly store: string;
  /** The version that the server tells; `undefined` where it tells none. */
  readonly version: string | undefined;
  /** What would break locks or slow them; none where nothing would. */
  readonly findings: readonly Finding[];
  /** Whether nothing of the locks is there yet, which their first use makes: a diagnosis makes nothing. @defaultValue `false` */
  readonly isUnused?: boolean;
  /**
   * The finding for an error that a lock on this store threw, or for a process warning of its adapter; `undefined` for one that is not
   * known.
   */
  readonly explain?: (error: unknown) => Finding | undefined;
}
