import { mustBe } from '../errors.ts';

/**
 * Refuses an argument that is no lock manager.
 *
 * @param what - what the argument is, for the message
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkManager(what: string, locks: unknown): void {
  if (typeof (locks as { readonly lock?: unknown } | null | undefined)?.lock === 'function') return;
  throw mustBe(what, 'a lock manager, as createLocks() gives it', locks);
}
