import { type Diagnosis, error, failureOf, type Finding, found } from '@locks/core/doctor';
import type { ManagerPair } from '../manager-pair.ts';
import { tryLocks } from './trial.ts';

/** Takes locks as programs do, and gives a finding for every obstacle. */
export async function trialFindings(
  { store, findings, isUnused = false, explain = () => undefined }: Diagnosis,
  locks: ManagerPair,
): Promise<readonly Finding[]> {
  // A trial would make what is missing; and where locks fail for a reason that is known, it adds nothing.
  if (isUnused || findings.some(({ severity }) => severity === 'error')) return [];
  const { failures, warnings } = await tryLocks(locks);
  const ofFailures = failures.map(({ doing, error: failure }) => {
    const { message } = failureOf(failure);
    const known = explain(failure) ?? error(`${store}/trial`, message, SEE_THE_PAGE);
    return { ...known, what: `could not ${doing}: ${message}` };
  });
  const seen = [...found(...warnings.map(explain)), ...ofFailures];
  // Several modes may fail for one reason, which is reported once.
  return [...new Map(seen.map((finding) => [`${finding.id} ${finding.what}`, finding])).values()];
}

const SEE_THE_PAGE =
  'programs that use these locks fail in the same way: see the page of the backend, "What you see when something is wrong"';
