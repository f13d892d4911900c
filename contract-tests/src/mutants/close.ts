import { delegate, delegateLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';

export const closeMutants: readonly Mutant[] = [
  {
    name: 'close-takes-its-time',
    says: 'close comes back at once, and closes some seconds later',
    host: 'memory',
    expected: [
      'close/refuses-new-calls',
      'close/ends-waits',
      'close/gives-back-and-tells',
      'close/lets-the-process-end',
    ],
    locks: (locks) =>
      delegateLocks(locks, {
        async close() {
          setTimeout(() => void locks.close().catch(() => {}), 3_000);
        },
      }),
  },
  {
    name: 'closes-the-backend-twice',
    says: 'the backend is closed twice',
    host: 'memory',
    expected: ['close/twice-is-once'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async close() {
          await backend.close();
          await backend.close();
        },
      }),
    ),
  },
  {
    name: 'close-outruns-abandons',
    says: 'close does not wait for what is being abandoned',
    host: 'memory',
    expected: ['close/settles-what-is-under-way'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async abandon(...args) {
          void backend.abandon(...args).catch(() => {});
        },
      }),
    ),
  },
  {
    name: 'close-keeps-what-is-held',
    says: 'close does not give back what is held',
    host: 'memory',
    expected: ['close/gives-back-and-tells', 'renewal/unconfirmed-is-abandoned'],
    calls: onCalls((backend) => {
      const granted = new Set<string>();
      return delegate(backend, {
        async attempt(...args) {
          const attempt = await backend.attempt(...args);
          if (attempt.status === 'granted') granted.add(args[0].acquisitionId);
          return attempt;
        },
        abandon: (request, call) =>
          granted.has(request.acquisitionId) ? Promise.resolve() : backend.abandon(request, call),
      });
    }),
  },
];
