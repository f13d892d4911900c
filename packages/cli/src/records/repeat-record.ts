import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from '@locks/core';
import type { OnceRecord } from '@locks/once';

/** The pauses between the tries. */
const PAUSES_MS = [500, 1_000, 2_000];

/**
 * A record whose calls are repeated when they fail: a job of an hour is not run again since the store was away for a second. A
 * write may be repeated, as the same token may write many times.
 */
export function repeatRecord({ read, write }: OnceRecord): OnceRecord {
  return {
    read: (job) => repeat(() => read(job)),
    write: (job, entry) => repeat(() => write(job, entry)),
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
