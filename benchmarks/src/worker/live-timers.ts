import { createHook } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';

const LOOKS = 5;
const BETWEEN_LOOKS_MS = 30;

/**
 * How many timers of `setTimeout` and `setInterval` that `work` made are armed after it while nothing is under way: the
 * least of several looks, since a request under way may have one of its own.
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
    for (let look = 0; look < LOOKS; look += 1) {
      await delay(BETWEEN_LOOKS_MS);
      // The news of an ended timer comes with the next turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      least = Math.min(least, live.size);
    }
    return least;
  } finally {
    hook.disable();
  }
}
