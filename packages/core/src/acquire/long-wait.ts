import type { LeaseWait } from '../deadlock/long-waits.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { HolderQuery } from '../waiting/holder-query.ts';

/** Does something with what only long waits, and waits that give up, need. Where that file is missing, as in a bundle that left it out, nothing is done. */
function withLongWaits(use: (loaded: typeof import('../deadlock/long-waits.ts')) => unknown): void {
  void import('../deadlock/long-waits.ts').then(use).catch(() => {});
}

/** Looks for circles over several processes once the wait has lasted for `deadlockAfterMs`. Returns the function that ends the watch. */
export function whenLong(wait: LeaseWait): () => void {
  const { core } = wait;
  const { deadlines, deadlockAfterMs } = core;
  if (deadlockAfterMs === Number.POSITIVE_INFINITY) return () => {};
  let isOver = false;
  let endWatch: (() => void) | undefined;
  const startedAt = core.now();
  const cancel = deadlines.at(startedAt + deadlockAfterMs, () =>
    withLongWaits(({ watchWait }) => {
      if (!isOver) endWatch = watchWait(wait, core.now() - startedAt);
    }),
  );
  return () => {
    isOver = true;
    cancel();
    endWatch?.();
  };
}

/** Finds out for whom the holders of a lock wait themselves, for a wait that is about to give up. */
export function explainWait(
  core: ManagerCore,
  resource: string,
  query: HolderQuery,
  startedAt: number,
): void {
  withLongWaits(({ readChain }) => readChain(core, resource, query, startedAt));
}
