import type { AcquireRequest } from '../backend/types.ts';
import { quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';

/** `LOCK_CONTENDED`: as many wait as the request allows (docs/spec.md §7.9). */
export function fullError(core: ManagerCore, { resource, maxWaiters }: AcquireRequest): Error {
  const message = `${quote(resource)} is held, and ${maxWaiters} wait for it, which is its maxWaiters.`;
  return core.error('LOCK_CONTENDED', message, resource);
}
