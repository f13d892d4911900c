import { checkManager, mustBe } from '@locks/core/backend';

/**
 * Checks the arguments of a function `(locks, name, work, options)`; the lock and the options are checked where they are read.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`, which shows the order
 */
export function checkCall(caller: string, locks: unknown, name: unknown, work: unknown): void {
  const call = `${caller}(locks, name, work, options)`;
  checkManager(`${call}: the first argument`, locks);
  if (typeof name !== 'string') throw mustBe(`${call}: the name`, 'a string', name);
  if (typeof work !== 'function') throw mustBe(`${call}: the work`, 'a function', work);
}
