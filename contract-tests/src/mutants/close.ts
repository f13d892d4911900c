import { setTimeout as delay } from 'node:timers/promises';
import { delegate, delegateLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';

export const closeMutants: readonly Mutant[] = [
  {
    name: 'close-takes-its-time',
    says: 'close resolves at once, and closes some seconds later',
    host: 'memory',
    expected: [
      'close/refuses-new-calls',
      'close/ends-waits',
      'close/releases-and-reports',
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
    name: 'does-not-drain',
    says: 'close with drainMs releases all leases at once',
    host: 'memory',
    expected: ['close/drains', 'close/drain-ends'],
    locks: (locks) => delegateLocks(locks, { close: () => locks.close() }),
  },
  {
    name: 'drains-for-ever',
    says: 'close with drainMs waits for the release of all leases without a limit',
    host: 'memory',
    expected: ['close/drain-ends'],
    locks: (locks) =>
      delegateLocks(locks, {
        close: (options) =>
          locks.close(options?.drainMs === undefined ? options : { drainMs: Number.POSITIVE_INFINITY }),
      }),
  },
  {
    name: 'drains-with-open-doors',
    says: 'close with drainMs takes new acquires, and lets waiters wait, until its time is over',
    host: 'memory',
    expected: ['close/drains'],
    locks: (locks) =>
      delegateLocks(locks, {
        async close(options) {
          await delay(options?.drainMs ?? 0, undefined, { ref: false });
          await locks.close();
        },
      }),
  },
  {
    name: 'drains-without-renewals',
    says: 'no lease is renewed while close waits for its release',
    host: 'memory',
    expected: ['close/drains'],
    calls: onCalls((backend) => {
      let draining = false;
      return delegate(backend, {
        attempt: (...args) => backend.attempt(...args),
        renew: (items, call) => (draining ? new Promise(() => {}) : backend.renew(items, call)),
        abandon(...args) {
          // The first call of a closing manager to a backend ends its waits.
          draining = true;
          return backend.abandon(...args);
        },
      });
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
    says: 'close does not wait for the answers to abandons',
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
    says: 'close does not release the leases',
    host: 'memory',
    expected: ['close/releases-and-reports', 'renewal/unconfirmed-is-abandoned'],
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
