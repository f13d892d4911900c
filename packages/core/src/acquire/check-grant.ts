import type { BackendCapabilities, Grant } from '../backend/types.ts';
import { isDuration } from '../tenure/keeper.ts';

/** What is wrong with a grant. Whatever came, it is no lease unless it says all that one is judged by (docs/spec.md §13.1). */
export function faultOfGrant(
  grant: Grant,
  acquisitionId: string,
  { fencing }: BackendCapabilities,
  now: number,
): string | undefined {
  const granted = (grant as Partial<Grant> | null | undefined)?.request?.acquisitionId;
  if (granted !== acquisitionId) return `it granted ${granted} where ${acquisitionId} had asked`;
  if (!Number.isFinite(grant.countedFrom) || !isDuration(grant.validForMs)) {
    return 'it granted without saying since when, or for how long';
  }
  // On another clock than core's, most likely: such a lease would never end.
  if (grant.countedFrom > now) return 'it granted from a moment that is still to come';
  if (fencing !== 'none' && typeof grant.fencingToken !== 'bigint') {
    return 'it promised a fencing token and granted without one';
  }
  return undefined;
}
