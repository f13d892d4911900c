import type { Holder } from '../backend/types.ts';
import { type LockError, quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { ResolvedOptions } from '../options.ts';
import type { HolderQuery } from '../waiting/holder-query.ts';

/**
 * The `LOCK_TIMEOUT` error. Its message names the holders. When this process is one of them, it says what nesting needs;
 * otherwise, that a wait shorter than the ttl does not outlive a crashed holder.
 *
 * @param waiting - the options of an acquire that waited; absent for a single attempt
 */
export function timeoutError(
  core: ManagerCore,
  resource: string,
  waitedMs: number,
  query: HolderQuery | undefined,
  waiting?: ResolvedOptions,
): LockError {
  const waited = waitedMs < 1 ? 'at once' : `after ${Math.round(waitedMs)} ms`;
  const parts = [`Gave up on ${quote(resource)} ${waited}: ${describeHolders(query)}.`];
  if (query?.isHeldHere) {
    parts.push(
      'This process holds it itself. If the waiting code runs inside the holding code, it waits for itself: ' +
        'pass { within: lease }, or make the lock with { reentrant: true } and use run inside run.',
    );
  } else if (isUnobserved(core, query)) {
    parts.push(
      `${core.backend.name} tells no time: a dead holder ends for who has seen it unchanged for its ttl. ` +
        'Wait for longer than that, or give the backend a clock.',
    );
  } else if (waiting !== undefined && mayHaveCrashed(core, query) && waiting.waitMs < waiting.ttlMs) {
    parts.push(
      'A crashed holder keeps it for up to its ttl, and this wait was shorter: ' +
        `waitMs ${waiting.waitMs}, ttlMs ${waiting.ttlMs}.`,
    );
  }
  return core.error('LOCK_TIMEOUT', parts.join(' '), resource);
}

/** Whether a dead holder can be in the way until its ttl is over: a session ends without regard to the ttl. */
function mayHaveCrashed(core: ManagerCore, query: HolderQuery | undefined): boolean {
  return core.backend.capabilities.tenure === 'lease' && query?.holders?.length !== 0;
}

/** Whether this process cannot know yet that a holder is dead. */
function isUnobserved(core: ManagerCore, query: HolderQuery | undefined): boolean {
  return core.backend.capabilities.expiry === 'observed' && (query?.holders?.length ?? 0) > 0;
}

function describeHolders(query: HolderQuery | undefined): string {
  if (query === undefined) return 'it is contended';
  const { holders, error } = query;
  // The store may have fallen silent since it answered that somebody else holds (docs/spec.md §7.5).
  if (holders === undefined) {
    const why = error instanceof Error ? `: ${error.message}` : '';
    return `it was contended, and the store did not say at the end who holds it${why}`;
  }
  if (holders.length === 0) return 'it was contended until the end';
  return `held by ${holders.slice(0, 3).map(describeHolder).join(', ')}${holders.length > 3 ? ', …' : ''}`;
}

function describeHolder({ label, acquisitionId, heldForMs, expiresInMs }: Holder): string {
  const since = heldForMs === undefined ? '' : ` for ${Math.round(heldForMs)} ms`;
  const until = expiresInMs === undefined ? '' : ` (ends in ${Math.round(expiresInMs)} ms unless renewed)`;
  return `${label ?? acquisitionId}${since}${until}`;
}
