import type { Holder } from '../backend/types.ts';
import { type LockError, quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { ResolvedOptions } from '../options.ts';
import type { HolderQuery } from '../waiting/holder-query.ts';

/**
 * `LOCK_TIMEOUT` where the acquire waited, `LOCK_CONTENDED` where it does not wait. The message names the holders. When this process is
 * one of them, most often another call of it was busy; code that waits for a `run` around it has got `LOCK_REENTRANT` before, where core can see that. A wait shorter than the ttl does not
 * outlive a crashed holder.
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
  const { ttl } = core.backend.capabilities;
  const waited = waitedMs < 1 ? 'at once' : `after ${Math.round(waitedMs)} ms`;
  // The query may be that of a wait, whose chain is of no concern to a single attempt (docs/spec.md §5.11).
  const { chain, chainText = '' } = (waiting && query) ?? {};
  const parts = [`Gave up on ${quote(resource)} ${waited}: ${describeHolders(query)}.${chainText}`];
  if (query?.isHeldHere) {
    parts.push(
      'Another call of this process holds it: wait for longer, or hold it for less. ' +
        'Only code that runs while its own caller holds the lock passes { within: lease }.',
    );
  }
  if (isUnobserved(core, query)) {
    parts.push(
      "The expiry of this backend is 'observed': a dead holder's lock is free only for a process that has seen it unchanged for its whole " +
        "ttl. Wait for longer than that, or use the store's clock: expiry 'clock', in all processes.",
    );
  } else if (
    waiting !== undefined &&
    mayHaveCrashed(core, query) &&
    waiting.waitMs < waiting.ttlMs + (ttl.marginMs ?? 0)
  ) {
    const margin = ttl.marginMs === undefined ? '' : ` and ${ttl.marginMs} ms for the store's clock`;
    parts.push(
      `A crashed holder keeps it for up to its ttl${margin}, and this wait was shorter: ` +
        `waitMs ${waiting.waitMs}, ttlMs ${waiting.ttlMs}.`,
    );
  }
  const code = waiting === undefined ? 'LOCK_CONTENDED' : 'LOCK_TIMEOUT';
  return core.error(code, parts.join(' '), resource, { chain });
}

/** Whether a dead holder can be in the way until its ttl is over: a session, and a foreign key without an end, has none. */
function mayHaveCrashed(core: ManagerCore, query: HolderQuery | undefined): boolean {
  const ends = query?.holders?.some(({ expiresInMs }) => expiresInMs !== undefined) ?? true;
  return core.backend.capabilities.tenure === 'lease' && ends;
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
