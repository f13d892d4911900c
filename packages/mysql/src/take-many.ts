import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Desks } from './desks.ts';
import { isOverflow } from './mysql-error.ts';
import { freshVersion } from './statements.ts';
import type { Store } from './store.ts';
import { takenGrant, takenState } from './taken.ts';

/** All names or none, in one statement; another one reads the tokens, or whether an earlier call had got them all. */
export async function takeMany(
  store: Store,
  desks: Desks,
  requests: readonly AcquireRequest[],
  call: Call,
): Promise<readonly Grant[] | undefined> {
  // In one order for all, which deadlocks less.
  const takes = requests
    .map((request) => ({ request, version: freshVersion() }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.request.resource), Buffer.from(b.request.resource)));
  const countedFrom = call.now();
  const { statements } = store;
  const names = requests.map(({ resource }) => resource);
  const cells = await store.session(call, async (session) => {
    try {
      await session.write(statements.takeAll(takes));
    } catch (error) {
      if (!isOverflow(error)) throw error;
    }
    return await session.read(statements.read(names));
  });
  const { states, now } = statements.snapshot(cells);
  const versions = new Map(takes.map(({ request, version }) => [request, version]));
  const grants: Grant[] = [];
  for (const request of requests) {
    const state = states.get(request.resource);
    const hold = state?.holds.find(({ id }) => id === request.acquisitionId);
    if (state === undefined || hold === undefined || (hold.until ?? 0) <= now) return undefined;
    const grant = takenGrant(request, hold.token, countedFrom);
    if (state.version === versions.get(request)) {
      desks.adopt(request, takenState(request, state.version, hold.token));
      grants.push(grant);
    } else {
      // Of an earlier call with this id: what is left.
      grants.push({ ...grant, validForMs: ((hold.until ?? now) - now) / 1_000 });
    }
  }
  return grants;
}
