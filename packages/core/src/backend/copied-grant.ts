import type { Grant } from './types.ts';

/** A copy of a grant by which another instance of its backend renews (docs/spec.md §4.8): it can be sent to another thread. */
export function copiedGrant(grant: Grant): Grant {
  if (grant.atStore !== undefined) return copiedGrant(grant.atStore);
  const { request, fencingToken, countedFrom, validForMs } = grant;
  return structuredClone({
    request,
    countedFrom,
    ...(fencingToken !== undefined && { fencingToken }),
    ...(validForMs !== undefined && { validForMs }),
  });
}
