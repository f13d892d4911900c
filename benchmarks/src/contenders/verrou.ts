import type { Verrou } from '@verrou/core';
import { type Acquire, TTL_MS } from './contender.ts';

/** On the store that the library was opened with. */
export function acquireVerrou(library: Pick<Verrou<never>, 'createLock'>): Acquire {
  return async (name) => {
    const lock = library.createLock(name, TTL_MS);
    if (!(await lock.acquire())) throw new Error('verrou gave up');
    return () => lock.release();
  };
}
