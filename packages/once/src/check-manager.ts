import { mustBe } from '@locks/core/backend';

/** @throws LockError `LOCK_INVALID_ARGUMENT` for what is no lock manager */
export function checkManager(caller: string, locks: { readonly lock: unknown } | null | undefined): void {
  if (typeof locks?.lock !== 'function')
    throw mustBe(`${caller}: the first argument`, 'a lock manager', locks);
}
