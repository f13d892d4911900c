import type { LockBackend } from '@locks/core';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

/** Every second attempt takes another, slower way to the store. */
function attemptsOvertake(backend: LockBackend): LockBackend {
  let attempts = 0;
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      attempts += 1;
      if (attempts % 2 === 0) await pause(2);
      return await backend.attempt(request, enqueue, call);
    },
  });
}

export const fairnessCallMutants: readonly Mutant[] = [
  {
    name: 'attempts-overtake',
    says: 'attempts of one turn of the event loop reach the store in another order',
    host: 'memory',
    expected: ['fairness/order-of-calls'],
    backend: attemptsOvertake,
  },
];
