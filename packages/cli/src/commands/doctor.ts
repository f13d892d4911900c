import { isLockError } from '@locks/core';
import type { Examine } from '../doctor/examination.ts';
import type { Diagnosis, Finding } from '../doctor/finding.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine, shown } from '../foreign-text.ts';
import { openStore, REACH_MS } from '../open-store.ts';
import { readStoreUrl, type StoreName } from '../store-url.ts';
import type { Write } from './look.ts';

/** The examination of each store. The client of the store is loaded with it. */
const EXAMINATIONS: Readonly<Record<StoreName, () => Promise<Examine>>> = {
  redis: async () => (await import('../doctor/redis.ts')).examineRedis,
  postgres: async () => (await import('../doctor/postgres.ts')).examinePostgres,
  mysql: async () => (await import('../doctor/mysql.ts')).examineMysql,
  etcd: async () => (await import('../doctor/etcd.ts')).examineEtcd,
  zookeeper: async () => (await import('../doctor/zookeeper.ts')).examineZookeeper,
  sqlite: async () => (await import('../doctor/sqlite.ts')).examineSqlite,
};

/**
 * Stores whose examinations connect by themselves: the first use makes tables or a file, or fails where that is not allowed; a
 * cluster without a leader answers nothing but questions about its members.
 */
const CONNECTS_BY_ITSELF = new Set<StoreName>(['postgres', 'mysql', 'sqlite', 'etcd']);

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
  if (!CONNECTS_BY_ITSELF.has(url.store))
    for (const store of [one, other]) await store.reach(REACH_MS).catch(unlessExaminable);
  const examine = await EXAMINATIONS[url.store]();
  const diagnosis = await examine({ url, prefix, locks: { one: one.locks, other: other.locks } });
  write(json ? jsonLine(diagnosis) : `${textOf(diagnosis)}\n`);
  return diagnosis.findings.some(({ severity }) => severity === 'error') ? EXIT.unfit : EXIT.ok;
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
