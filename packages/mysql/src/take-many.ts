import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Cells, Session } from './connections.ts';
import type { Desks } from './desks.ts';
import { freshVersion } from './statements.ts';
import type { Store } from './store.ts';
import { takenGrant, takenState } from './taken.ts';

class NotAll extends Error {}

/**
 * All names or none: each row is taken as in a single `take`, in one transaction that is undone when one of them was not free.
 */
export async function takeMany(
  store: Store,
  desks: Desks,
  requests: readonly AcquireRequest[],
  call: Call,
): Promise<readonly Grant[] | undefined> {
  // In one order for all, which deadlocks less.
  const wanted = requests
    .map((request) => ({ request, version: freshVersion() }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.request.resource), Buffer.from(b.request.resource)));
  const countedFrom = call.now();
  let grants: Map<AcquireRequest, Grant>;
  try {
    grants = await store.session(call, (session) => takeInTransaction(session, store, wanted, countedFrom));
  } catch (error) {
    if (error instanceof NotAll) return undefined;
    throw error;
  }
  for (const { request, version } of wanted) {
    const grant = grants.get(request) as Grant;
    if (grant.validForMs !== undefined) continue;
    desks.adopt(request, takenState(request, version, Number(grant.fencingToken)));
  }
  return requests.map((request) => grants.get(request) as Grant);
}

async function takeInTransaction(
  session: Session,
  store: Store,
  wanted: readonly { readonly request: AcquireRequest; readonly version: number }[],
  countedFrom: number,
): Promise<Map<AcquireRequest, Grant>> {
  const { statements } = store;
  await session.write('START TRANSACTION');
  try {
    await session.write(statements.take(wanted));
    const rows = await session.read(statements.lockRows(wanted.map(({ request }) => request.resource)));
    const { states, now } = statements.snapshot(rows as readonly Cells[]);
    const grants = new Map<AcquireRequest, Grant>();
    for (const { request, version } of wanted) {
      const state = states.get(request.resource);
      const hold = state?.holds.find(({ id }) => id === request.acquisitionId);
      if (state === undefined || hold === undefined) throw new NotAll();
      const grant = takenGrant(request, hold.token, countedFrom);
      // Granted by an earlier call with these ids: what is left of it.
      const left = ((hold.until ?? 0) - now) / 1_000;
      if (state.version !== version && left <= 0) throw new NotAll();
      grants.set(request, state.version === version ? grant : { ...grant, validForMs: left });
    }
    await session.write('COMMIT');
    return grants;
  } catch (error) {
    await session.write('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
