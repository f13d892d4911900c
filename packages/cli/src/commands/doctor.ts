import { isLockError, LockError } from '@locks/core';
import { type Diagnosis, failureOf, type Finding } from '@locks/core/doctor';
import { trialFindings } from '../doctor/trial-findings.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine, shown } from '../foreign-text.ts';
import { openStore, REACH_MS } from '../open-store.ts';
import { readStoreUrl, type StoreName } from '../store-url.ts';
import type { Write } from './look.ts';

/** Stores where a ping makes nothing: it tells whether they answer. The first use of others makes tables, a bucket or a file. */
const PINGED_FIRST = new Set<StoreName>(['redis', 'zookeeper']);

/**
 * Reports everything about a store that would break locks or slow them. Gives the exit code.
 * @throws UsageError; LockError `LOCK_BACKEND` where the store cannot be reached
 */
export async function doctor(
  text: string | undefined,
  prefix: string | undefined,
  json: boolean,
  write: Write,
): Promise<number> {
  const url = readStoreUrl(text);
  await using one = await openStore(text, prefix);
  await using other = await openStore(text, prefix);
  if (PINGED_FIRST.has(url.store))
    for (const reached of [one, other]) await reached.reach(REACH_MS).catch(unlessExaminable);
  const seen = await ofAdapter(url.store, one.examine);
  // The first answer of a store may show that it is a cluster, which other managers serve.
  const tried = await trialFindings(seen, { one: one.locks, other: other.locks });
  const { store, version } = seen;
  const diagnosis = { store, version, findings: [...seen.findings, ...tried] };
  write(json ? jsonLine(diagnosis) : `${textOf(diagnosis)}\n`);
  return diagnosis.findings.some(({ severity }) => severity === 'error') ? EXIT.unfit : EXIT.ok;
}

/** @throws LockError `LOCK_BACKEND` where the store gives no answer, or refuses */
async function ofAdapter(store: StoreName, examine: () => Promise<Diagnosis>): Promise<Diagnosis> {
  try {
    return await examine();
  } catch (error) {
    if (isLockError(error)) throw error;
    const says = `${store} cannot be examined: ${failureOf(error).message}`;
    throw new LockError('LOCK_BACKEND', says, { cause: error });
  }
}

/**
 * Rethrows an error unless the store can be examined: a user who may not send a ping has reached the store, and a cluster that
 * is down says why.
 */
function unlessExaminable(cause: unknown): void {
  if (!isLockError(cause, 'LOCK_BACKEND') || !/NOPERM|CLUSTERDOWN/.test(cause.message)) throw cause;
}

function textOf({ store, version, findings }: Diagnosis): string {
  const title = version === undefined ? store : shown(`${store} ${version}`);
  if (findings.length === 0) return `${title}: nothing would break locks or slow them`;
  const lines = findings.flatMap(({ severity, id, what, toDo }) => [
    `${severity.padEnd(8)} ${id}`,
    `  ${shown(what)}`,
    `  do: ${shown(toDo)}`,
  ]);
  return [`${title}: ${countsOf(findings)}`, ...lines].join('\n');
}

function countsOf(findings: readonly Finding[]): string {
  const counts = (['error', 'warning', 'unknown'] as const).flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    if (count === 0) return [];
    return [severity === 'unknown' ? `${count} not known` : `${count} ${severity}${count === 1 ? '' : 's'}`];
  });
  return counts.join(', ');
}
