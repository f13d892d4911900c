import { createHook } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';

const COUNTS = 5;
const BETWEEN_COUNTS_MS = 30;

/**
 * How many timers of `setTimeout` and `setInterval` that `work` made are armed after it while nothing is under way: the
 * least of several counts, since a request under way may have a timer of its own.
 */
export async function countLiveTimers(work: () => Promise<void>): Promise<number> {
  const live = new Set<number>();
  const hook = createHook({
    init: (id, type) => {
      if (type === 'Timeout') live.add(id);
    },
    destroy: (id) => {
      live.delete(id);
    },
  });
  hook.enable();
  try {
    await work();
    let least = Number.POSITIVE_INFINITY;
    for (let count = 0; count < COUNTS; count += 1) {
      await delay(BETWEEN_COUNTS_MS);
      // The end of a timer is seen in the next iteration of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      least = Math.min(least, live.size);
    }
    return least;
  } finally {
    hook.disable();
  }
}
