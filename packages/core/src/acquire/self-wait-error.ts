import type { LockMode } from '../backend/types.ts';
import { type LockError, quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';

/** `LOCK_REENTRANT`: the code waits for a lease whose `run` is around it (docs/spec.md §5.5). */
export function selfWaitError(
  core: ManagerCore,
  resource: string,
  held: LockMode,
  wanted: LockMode,
): LockError {
  return core.error(
    'LOCK_REENTRANT',
    `This code would wait for itself: it runs inside a run() that holds ${quote(resource)}. ${advice(held, wanted)} ` +
      'Work that the run() does not await belongs into locks.detached(work).',
    resource,
  );
}

function advice(held: LockMode, wanted: LockMode): string {
  if (held.kind === 'permit') return 'Take as many permits at once as the whole work needs.';
  if (held.kind === 'shared' && wanted.kind === 'exclusive')
    return 'A shared lease is never upgraded: release it first, or take the exclusive lock from the start.';
  return 'Pass { within: lease } with the lease of that run(), or make the lock with { reentrant: true } and use run().';
}
