import { isLockError, type LockManager } from '@locks/core';

/** Two pieces of code take two locks in both orders: one of them ends with `LOCK_DEADLOCK`. */
export async function inCircle(locks: Pick<LockManager, 'lock'>): Promise<void> {
  let bothHold = (): void => {};
  const held = new Promise<void>((resolve) => (bothHold = resolve));
  let holding = 0;
  const take = (first: string, second: string): Promise<void> =>
    locks.lock(first).run(async () => {
      holding += 1;
      if (holding === 2) bothHold();
      await held;
      await locks
        .lock(second)
        .run(() => {})
        .catch((error: unknown) => {
          if (!isLockError(error, 'LOCK_DEADLOCK')) throw error;
        });
    });
  await Promise.all([take('a', 'b'), take('b', 'a')]);
}
