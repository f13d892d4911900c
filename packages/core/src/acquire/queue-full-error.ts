import type { AcquireRequest } from '../backend/types.ts';
import { quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';

/**
 * `LOCK_QUEUE_FULL`: as many wait as the request allows, or as the store has room for (docs/spec.md §7.9).
 *
 * @param because - what the store says of its room; absent where the limit is that of the request
 */
export function queueFullError(
  core: ManagerCore,
  { resource, maxWaiters }: AcquireRequest,
  because = `${maxWaiters} wait for it, which is its maxWaiters`,
): Error {
  return core.error('LOCK_QUEUE_FULL', `${quote(resource)} is held, and ${because}.`, resource);
}
