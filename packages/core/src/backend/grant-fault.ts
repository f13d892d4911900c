import type { BackendCapabilities, Grant } from './types.ts';

/**
 * Describes the fault of an invalid grant; `undefined` for a valid one. A grant becomes a lease only with all that a lease is
 * judged by (docs/spec.md §13.1). Core looks at the grants of its backend; a backend around others looks at theirs.
 *
 * @param now - of the call that was answered: `call.now()`
 */
export function grantFault(
  grant: Grant,
  acquisitionId: string,
  capabilities: BackendCapabilities,
  now: number,
): string | undefined {
  const granted = (grant as Partial<Grant> | null | undefined)?.request?.acquisitionId;
  if (granted !== acquisitionId) return `it granted ${granted} where ${acquisitionId} had asked`;
  const { countedFrom, validForMs = 0 } = grant;
  if (!Number.isFinite(countedFrom) || typeof validForMs !== 'number' || Number.isNaN(validForMs)) {
    return 'it granted without saying since when, or for how long';
  }
  // Most likely counted on another clock than core's: such a lease would never end.
  if (countedFrom > now) return 'it granted from a moment that is still to come';
  if (capabilities.fencing !== 'none' && typeof grant.fencingToken !== 'bigint') {
    return 'it promised a fencing token and granted without one';
  }
  return undefined;
}
