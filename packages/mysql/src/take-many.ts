import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import { isOverflow } from './mysql-error.ts';
import { freshVersion } from './mysql-statements.ts';
import { type MysqlStore, unhurried } from './mysql-store.ts';
import type { RowWriters } from './row-writers.ts';
import { takenGrant, takenRow } from './taken-row.ts';

/**
 * Takes all names or none in one statement. A second statement reads the tokens, or whether an earlier call had taken them all.
 *
 * @param isWanted - called when there is a connection: nothing is sent for names that were abandoned while they waited for it
 */
export async function takeMany(
  store: MysqlStore,
  writers: RowWriters,
  requests: readonly AcquireRequest[],
  call: Call,
  isWanted: () => boolean,
): Promise<readonly Grant[] | undefined> {
  // The names are sorted: clients that take in the same order deadlock less.
  const takes = requests
    .map((request) => ({ request, version: freshVersion() }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.request.resource), Buffer.from(b.request.resource)));
  const countedFrom = call.now();
  const { statements } = store;
  const names = requests.map(({ resource }) => resource);
  const cells = await store.session(unhurried(call), async (session) => {
    if (!isWanted()) return undefined;
    try {
      await session.write(statements.takeAll(takes));
    } catch (error) {
      if (!isOverflow(error)) throw error;
    }
    return await session.read(statements.read(names));
  });
  if (cells === undefined) return undefined;
  const { rows, now } = statements.snapshot(cells);
  const versions = new Map(takes.map(({ request, version }) => [request, version]));
  const grants: Grant[] = [];
  for (const request of requests) {
    const row = rows.get(request.resource);
    const hold = row?.holds.find(({ id }) => id === request.acquisitionId);
    if (row === undefined || hold === undefined || (hold.until ?? 0) <= now) return undefined;
    const grant = takenGrant(request, hold.token, countedFrom);
    if (row.version === versions.get(request)) {
      writers.adopt(request, takenRow(request, row.version, hold.token));
      grants.push(grant);
    } else {
      // An earlier call with this id took the name: the grant has the validity that is left.
      grants.push({ ...grant, validForMs: ((hold.until ?? now) - now) / 1_000 });
    }
  }
  return grants;
}
