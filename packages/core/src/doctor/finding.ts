import type { Finding } from './diagnosis.ts';

/** A finding of the severity `error`. */
export function error(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'error', what, toDo };
}

/** A finding of the severity `warning`. */
export function warning(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'warning', what, toDo };
}

/** A finding of the severity `unknown`. */
export function unknown(id: string, what: string, toDo: string): Finding {
  return { id, severity: 'unknown', what, toDo };
}

/** The findings of checks that may find nothing. */
export function found(...findings: readonly (Finding | false | undefined)[]): Finding[] {
  return findings.filter((finding) => finding !== undefined && finding !== false);
}
