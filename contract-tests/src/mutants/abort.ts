import type { AcquireOptions } from '@locks/core';
import type { Mutant } from './mutant.ts';

export const abortMutants: readonly Mutant[] = [
  {
    name: 'abort-by-race',
    says: 'an abort only rejects: the acquire goes on in the background',
    expected: [
      'abort/at-every-point',
      'abort/while-waiting',
      'abort/at-the-hand-off',
      'reentrancy/turn-that-came-too-late',
    ],
    lock: (lock) => ({
      acquire: async (options: AcquireOptions = {}) => {
        const { signal, ...rest } = options;
        signal?.throwIfAborted();
        const acquiring = lock.acquire(rest);
        if (signal === undefined) return acquiring;
        let stop: () => void = () => {};
        const aborted = new Promise<never>((_, reject) => {
          stop = () => reject(signal.reason);
          signal.addEventListener('abort', stop);
        });
        return Promise.race([acquiring, aborted]).finally(() => signal.removeEventListener('abort', stop));
      },
    }),
  },
  {
    name: 'abort-has-an-error-of-its-own',
    says: 'an abort rejects with another error than the reason of the signal',
    expected: [
      'abort/before-the-call',
      'abort/at-every-point',
      'abort/while-waiting',
      'reentrancy/local-wait-has-limits',
    ],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options).catch((error: unknown) => {
          throw options?.signal?.aborted ? new Error('aborted', { cause: error }) : error;
        }),
    }),
  },
  {
    name: 'aborted-is-not-checked',
    says: 'a signal that aborted before the call is ignored',
    expected: ['abort/before-the-call'],
    lock: (lock) => ({
      acquire: ({ signal, ...rest } = {}) => lock.acquire(signal?.aborted ? rest : { ...rest, signal }),
    }),
  },
  {
    name: 'abort-releases-the-lease',
    says: 'an abort after the grant releases the lease',
    expected: ['abort/after-the-grant'],
    lock: (lock) => ({
      async acquire(options) {
        const lease = await lock.acquire(options);
        options?.signal?.addEventListener('abort', () => void lease.release().catch(() => {}), {
          once: true,
        });
        return lease;
      },
    }),
  },
  {
    name: 'leaks-listeners',
    says: 'every acquire leaves a listener on the signal',
    expected: ['abort/listens-only-while-it-waits'],
    lock: (lock) => ({
      acquire: (options) => {
        options?.signal?.addEventListener?.('abort', () => {});
        return lock.acquire(options);
      },
    }),
  },
  {
    name: 'abort-comes-too-late',
    says: 'an abort in the last microtasks before the grant is known changes nothing',
    expected: ['abort/before-it-settles'],
    lock: (lock) => ({
      async acquire(options) {
        const lease = await lock.acquire(options);
        await Promise.resolve();
        return lease;
      },
    }),
  },
];
