/**
 * The severity of a finding. `error`: locks fail, or two may hold one, while everything works as it is set up. `warning`: locks
 * may be lost after a crash, a power cut or a failover, or are granted late. `unknown`: this user may not find out.
 */
export type Severity = 'error' | 'warning' | 'unknown';

/** Something about a store that would break locks or slow them. */
export interface Finding {
  /** The identifier, the same in all versions: `redis/eviction`. */
  readonly id: string;
  readonly severity: Severity;
  readonly what: string;
  /** The advice how to solve the problem. */
  readonly toDo: string;
}

/** The findings about one store. */
export interface Diagnosis {
  readonly store: string;
  /** The version that the server tells; `undefined` where it tells none. */
  readonly version: string | undefined;
  readonly findings: readonly Finding[];
}

export function error(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'error', what, toDo };
}

export function warning(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'warning', what, toDo };
}

export function unknown(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'unknown', what, toDo };
}

/** The findings of checks that may find nothing. */
export function found(...findings: readonly (Finding | false | undefined)[]): Finding[] {
  return findings.filter((finding) => finding !== undefined && finding !== false);
}
