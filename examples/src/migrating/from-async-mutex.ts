/** From async-mutex, for one process, to `@locks/core` in memory: another backend makes it a lock over many processes. */
import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { Mutex } from 'async-mutex';
import type { RunLocked } from './run-locked.ts';

export function before(): RunLocked {
  const mutexes = new Map<string, Mutex>();
  return (name, work) => {
    const mutex = mutexes.get(name) ?? new Mutex();
    mutexes.set(name, mutex);
    return mutex.runExclusive(work);
  };
}

export function after(): RunLocked {
  const locks = createLocks(memoryBackend(), { waitMs: Number.POSITIVE_INFINITY });
  return (name, work) => locks.lock(name).run(work);
}
