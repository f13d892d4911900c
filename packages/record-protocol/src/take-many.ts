import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import { freshVersion } from './fresh-version.ts';
import { type LockTable, takenGrant } from './lock-table.ts';
import type { RowsInUse } from './rows-in-use.ts';
import { unhurried } from './time-limit.ts';

/**
 * Takes all names or none in one request. A second one reads the tokens, or whether an earlier call had taken them all.
 *
 * @param isWanted - asked when the request could be sent: nothing is sent for names that were abandoned until then
 */
export async function takeMany(
  table: LockTable,
  rowsInUse: RowsInUse,
  requests: readonly AcquireRequest[],
  call: Call,
  isWanted: () => boolean,
): Promise<readonly Grant[] | undefined> {
  // The names are sorted: clients that take in the same order deadlock less.
  const takes = requests
    .map((request) => ({ request, version: freshVersion() }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.request.resource), Buffer.from(b.request.resource)));
  const countedFrom = call.now();
  const found = await table.takeMany?.(takes, unhurried(call), isWanted);
  if (found === undefined) return undefined;
  const { rows, now } = found;
  const versions = new Map(takes.map(({ request, version }) => [request, version]));
  const grants: Grant[] = [];
  for (const request of requests) {
    const row = rows.get(request.resource);
    const hold = row?.holds.find(({ id }) => id === request.acquisitionId);
    if (row === undefined || hold === undefined || (hold.until ?? 0) <= now) return undefined;
    const grant = takenGrant(request, hold.token, countedFrom);
    if (row.version === versions.get(request)) {
      rowsInUse.adopt(request, row, now);
      grants.push(grant);
    } else {
      // An earlier call with this id took the name: the grant has the validity that is left.
      grants.push({ ...grant, validForMs: ((hold.until ?? now) - now) / 1_000 });
    }
  }
  return grants;
}
