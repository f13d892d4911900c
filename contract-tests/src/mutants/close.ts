import { setTimeout as delay } from 'node:timers/promises';
import { type Mutant } from './mutant.ts';

export const closeMutants: readonly Mutant[] = [
  {
    name: 'closed-client-is-a-failure',
    says: 'a client that was closed before the locks is told as a failure of the store',
    expected: ['close/client-closed-first'],
    backend: () => ({ isClientClosed: () => false }),
  },
  {
    name: 'close-takes-its-time',
    says: 'close resolves at once, and closes some seconds later',
    expected: [
      'close/refuses-new-calls',
      'close/ends-waits',
      'close/releases-and-reports',
      'close/lets-the-process-end',
    ],
    locks: (locks) => ({
      async close() {
        setTimeout(() => void locks.close().catch(() => {}), 3_000);
      },
    }),
  },
  {
    name: 'close-is-patient',
    says: 'close beside a silent store waits until it answers again, or for ten seconds',
    host: 'memory-tcp',
    expected: ['close/settles-beside-a-silent-store'],
    locks: (locks) => ({
      async close(options) {
        const isSilent = await locks.ping({ answerMs: 500 }).then(
          () => false,
          () => true,
        );
        if (isSilent) await delay(10_000, undefined, { ref: false });
        await locks.close(options);
      },
    }),
  },
  {
    name: 'does-not-drain',
    says: 'close with drainMs releases all leases at once',
    expected: ['close/drains', 'close/drain-ends'],
    locks: (locks) => ({ close: () => locks.close() }),
  },
  {
    name: 'drains-for-ever',
    says: 'close with drainMs waits for the release of all leases without a limit',
    expected: ['close/drain-ends'],
    locks: (locks) => ({
      close: (options) =>
        locks.close(options?.drainMs === undefined ? options : { drainMs: Number.POSITIVE_INFINITY }),
    }),
  },
  {
    name: 'drains-with-open-doors',
    says: 'close with drainMs takes new acquires, and lets waiters wait, until its time is over',
    expected: ['close/drains'],
    locks: (locks) => ({
      async close(options) {
        await delay(options?.drainMs ?? 0, undefined, { ref: false });
        await locks.close();
      },
    }),
  },
  {
    name: 'drains-without-renewals',
    says: 'no lease is renewed while close waits for its release',
    expected: ['close/drains'],
    calls: (backend) => {
      let draining = false;
      return {
        attempt: (...args) => backend.attempt(...args),
        renew: (items, call) => (draining ? new Promise(() => {}) : backend.renew(items, call)),
        abandon(...args) {
          // The first call of a closing manager to a backend ends its waits.
          draining = true;
          return backend.abandon(...args);
        },
      };
    },
  },
  {
    name: 'closes-the-backend-twice',
    says: 'the backend is closed twice',
    expected: ['close/twice-is-once'],
    calls: (backend) => ({
      async close() {
        await backend.close();
        await backend.close();
      },
    }),
  },
  {
    name: 'close-outruns-abandons',
    says: 'close does not wait for the answers to abandons',
    expected: ['close/settles-what-is-under-way'],
    calls: (backend) => ({
      async abandon(...args) {
        void backend.abandon(...args).catch(() => {});
      },
    }),
  },
  {
    name: 'close-keeps-what-is-held',
    says: 'close does not release the leases',
    expected: ['close/releases-and-reports', 'renewal/unconfirmed-is-abandoned'],
    calls: (backend) => {
      const granted = new Set<string>();
      return {
        async attempt(...args) {
          const attempt = await backend.attempt(...args);
          if (attempt.status === 'granted') granted.add(args[0].acquisitionId);
          return attempt;
        },
        abandon: (request, call) =>
          granted.has(request.acquisitionId) ? Promise.resolve() : backend.abandon(request, call),
      };
    },
  },
  {
    name: 'goes-on-after-close',
    says: 'a closed backend still takes calls',
    expected: ['close/backend-refuses-calls', 'close/manager-on-closed-backend'],
    backend: () => ({ close: async () => {} }),
  },
  {
    name: 'fails-after-close',
    says: 'a closed backend fails as if its store were unreachable',
    expected: ['close/backend-refuses-calls', 'close/manager-on-closed-backend'],
    backend: (backend) => {
      let isClosed = false;
      const gone = new Error('the connection is closed');
      return {
        attempt: (...args) => (isClosed ? Promise.reject(gone) : backend.attempt(...args)),
        inspect: (...args) => (isClosed ? Promise.reject(gone) : backend.inspect(...args)),
        isRetryable: (error) => error === gone || backend.isRetryable(error),
        close() {
          isClosed = true;
          return backend.close();
        },
      };
    },
  },
  {
    name: 'calls-after-close',
    says: 'a grant that arrives after the backend was closed is abandoned there',
    expected: ['close/no-call-after'],
    calls: (backend) => {
      let isClosed = false;
      return {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          if (isClosed && attempt.status === 'granted') await backend.abandon(request, call);
          return attempt;
        },
        close() {
          isClosed = true;
          return backend.close();
        },
      };
    },
  },
];
