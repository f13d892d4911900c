import type { LeaseWait } from '../deadlock/long-waits.ts';

/**
 * Looks for circles over several processes once the wait has lasted for `deadlockAfterMs`. What does so is loaded by the first wait
 * that lasts for as long. Returns the function that ends the watch.
 */
export function whenLong(wait: LeaseWait): () => void {
  const { core } = wait;
  const { deadlines, deadlockAfterMs } = core;
  if (deadlockAfterMs === Number.POSITIVE_INFINITY) return () => {};
  let isOver = false;
  let endWatch: (() => void) | undefined;
  const startedAt = core.now();
  const watch = async (): Promise<void> => {
    const { watchWait } = await import('../deadlock/long-waits.ts');
    if (!isOver) endWatch = watchWait(wait, core.now() - startedAt);
  };
  // Where the file is missing, as in a bundle that left it out, the wait ends with its `waitMs`.
  const cancel = deadlines.at(startedAt + deadlockAfterMs, () => void watch().catch(() => {}));
  return () => {
    isOver = true;
    cancel();
    endWatch?.();
  };
}
