import type { ManagerPair } from '../manager-pair.ts';
import type { StoreUrl } from '../store-url.ts';
import type { Diagnosis, Finding } from './finding.ts';
import type { TrialFailure, TrialResult } from './trial.ts';
import { tryLocks } from './trial.ts';

/** The store that an examination gets. */
export interface ExaminedStore {
  readonly url: StoreUrl;
  readonly prefix: string | undefined;
  readonly locks: ManagerPair;
}

export type Examine = (store: ExaminedStore) => Promise<Diagnosis>;

/** The reason for a failure. */
export interface FailureReason {
  readonly message: string;
  /** The `code` of the error and of its causes. */
  readonly codes: readonly string[];
}

/** The mapping of a store's failures and warnings to findings. */
export interface TrialReading {
  /** The id of the finding, and what to do; `undefined` for a failure that is not known. */
  readonly failure: (reason: FailureReason) => Omit<Finding, 'what'> | undefined;
  /** The findings for warnings, by the code of the warning. */
  readonly warnings?: Readonly<Record<string, Omit<Finding, 'what'>>>;
}

/** Takes locks as programs do, and gives a finding for every obstacle. */
export async function trialFindings(
  store: string,
  locks: ManagerPair,
  reading: TrialReading,
): Promise<Finding[]> {
  return findingsOf(store, await tryLocks(locks), reading);
}

function findingsOf(store: string, { failures, warnings }: TrialResult, reading: TrialReading): Finding[] {
  const known = warnings.flatMap(({ code, message }) => {
    const finding = reading.warnings?.[code];
    return finding === undefined ? [] : [{ ...finding, what: message }];
  });
  const findings = [...known, ...failures.map((failure) => findingOf(store, failure, reading))];
  // Several modes may fail for one reason, which is reported once.
  return [...new Map(findings.map((finding) => [`${finding.id} ${finding.what}`, finding])).values()];
}

function findingOf(store: string, { doing, error }: TrialFailure, { failure }: TrialReading): Finding {
  const message = messagesOf(error);
  const { id, severity, toDo } = failure({ message, codes: codesOf(error) }) ?? {
    id: `${store}/trial`,
    severity: 'error' as const,
    toDo: 'programs that use these locks fail in the same way: see the page of the backend, "What you see when something is wrong"',
  };
  return { id, severity, what: `could not ${doing}: ${message}`, toDo };
}

/** The message of an error, with those of its causes that it does not repeat. */
function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  if (cause === undefined) return message;
  const more = messagesOf(cause);
  return message.includes(more) ? message : `${message} (${more})`;
}

function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code } = error as { readonly code?: unknown };
  return [...(typeof code === 'string' ? [code] : []), ...codesOf(error.cause)];
}
