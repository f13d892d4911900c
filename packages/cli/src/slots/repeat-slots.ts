import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '@locks/core';
import type { SlotStore } from '@locks/once';

/** The pauses between the tries. */
const PAUSES_MS = [500, 1_000, 2_000];

/**
 * A slot store whose calls are repeated when they fail: work of an hour is not run again since the store was away for a second. A
 * write may be repeated, as the same token may write many times.
 */
export function repeatSlots({ read, write }: SlotStore): SlotStore {
  return {
    read: (name) => repeat(() => read(name)),
    write: (name, entry) => repeat(() => write(name, entry)),
  };
}

async function repeat<T>(call: () => Promise<T>): Promise<T> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await call();
    } catch (error) {
      // A LockError is a refusal, not a failure.
      if (isLockError(error)) throw error;
    }
    await sleep(pauseMs);
  }
  return call();
}
