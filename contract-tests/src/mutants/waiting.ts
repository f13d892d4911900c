import { LockError, isLockError, type AcquireOptions, type Lease } from '@locks/core';
import { delegate, delegateLease, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls, pause, untilGivenUp } from './on-calls.ts';

export const waitingMutants: readonly Mutant[] = [
  {
    name: 'hears-late',
    says: 'a waiter hears of its turn more than a second late',
    host: 'memory',
    expected: ['waiting/granted-after-release', 'waiting/infinity-waits-until-released'],
    backend: (backend) =>
      delegate(backend, {
        awaitTurn: (_, call) => Promise.race([untilGivenUp(call), pause(1_200).then(() => undefined)]),
      }),
  },
  {
    name: 'loses-a-wake-up-now-and-then',
    says: 'every hundredth wake-up is lost',
    host: 'memory',
    expected: ['waiting/no-wake-up-is-lost'],
    backend(backend) {
      let turns = 0;
      return delegate(backend, {
        async awaitTurn(request, call) {
          const grant = await backend.awaitTurn?.(request, call);
          turns += 1;
          return turns % 100 === 0 ? await untilGivenUp(call) : grant;
        },
      });
    },
  },
  {
    name: 'infinity-is-a-number',
    says: 'waitMs Infinity is taken for a tenth of a second',
    host: 'memory',
    expected: ['waiting/infinity-waits-until-released'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options) =>
          lock.acquire(options?.waitMs === Infinity ? { ...options, waitMs: 100 } : options),
      })),
  },
  {
    name: 'waits-too-long',
    says: 'a wait lasts two seconds longer than waitMs',
    host: 'memory',
    expected: [
      'waiting/ends-within-wait-ms',
      'waiting/silent-store-is-bounded',
      'faults/transient-failure-is-retried',
    ],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options) =>
          lock.acquire(options?.waitMs ? { ...options, waitMs: options.waitMs + 2_000 } : options),
      })),
  },
  {
    name: 'gives-up-early',
    says: 'a wait ends after a tenth of its time',
    host: 'memory',
    expected: ['waiting/ends-within-wait-ms'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options) =>
          lock.acquire(options?.waitMs ? { ...options, waitMs: options.waitMs / 10 } : options),
      })),
  },
  {
    name: 'timeout-says-nothing',
    says: 'a timeout names neither the holder nor what nesting needs',
    host: 'memory',
    expected: [
      'waiting/ends-within-wait-ms',
      'waiting/timeout-explains-nesting',
      'reentrancy/not-unless-asked',
      'reentrancy/handle-inside-run',
    ],
    locks: (locks) =>
      overLocks(locks, (lock, resource) => {
        const bare = (error: unknown): never => {
          throw isLockError(error, 'LOCK_TIMEOUT')
            ? new LockError('LOCK_TIMEOUT', 'timed out', { resource })
            : error;
        };
        return {
          acquire: (options) => lock.acquire(options).catch(bare),
          run: (work, options) => lock.run(work, options).catch(bare),
        };
      }),
  },
  {
    name: 'abandon-does-nothing',
    says: 'a waiter that gives up stays in the queue, and keeps a later grant',
    host: 'memory',
    expected: [
      'waiting/timeout-leaves-nothing',
      'waiting/silent-store-is-bounded',
      'abort/at-every-point',
      'abort/while-waiting',
      'abort/at-the-hand-off',
      'abort/of-a-pushed-grant',
      'close/ends-waits',
      'close/releases-and-reports',
      'faults/broken-promises',
    ],
    backend: (backend) => delegate(backend, { abandon: () => Promise.resolve() }),
  },
  {
    name: 'tries-queue-up',
    says: 'an attempt that must not queue does so',
    host: 'memory',
    expected: ['waiting/zero-is-one-attempt'],
    backend: (backend) =>
      delegate(backend, { attempt: (request, _, call) => backend.attempt(request, true, call) }),
  },
  {
    name: 'tries-twice',
    says: 'tryAcquire tries again at once',
    host: 'memory',
    expected: ['waiting/zero-is-one-attempt'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        tryAcquire: async (options) => (await lock.tryAcquire(options)) ?? (await lock.tryAcquire(options)),
      })),
  },
  {
    name: 'hides-its-waiters',
    says: 'inspect never shows waiters',
    host: 'memory',
    expected: ['waiting/waiters-are-shown-in-order'],
    backend: (backend) =>
      delegate(backend, {
        inspect: async (...args) => ({ ...(await backend.inspect(...args)), waiters: [] }),
      }),
  },
  {
    name: 'loses-labels',
    says: 'the label never reaches the store',
    host: 'memory',
    expected: ['waiting/ends-within-wait-ms', 'waiting/waiters-are-shown-in-order'],
    backend: (backend) =>
      delegate(backend, {
        attempt: (request, enqueue, call) => {
          const { label: _, ...unlabelled } = request;
          return backend.attempt(unlabelled, enqueue, call);
        },
      }),
  },
  {
    name: 'ignores-hints',
    says: 'a hint is not followed by an attempt',
    host: 'memory',
    expected: ['waiting/hint-is-followed-by-attempt', 'waiting/hints-make-no-tight-loop'],
    calls: onCalls((backend) =>
      delegate(backend, {
        awaitTurn: async (request, call) =>
          (await backend.awaitTurn?.(request, call)) ?? (await untilGivenUp(call)),
      }),
    ),
  },
  {
    name: 'asks-sixty-times',
    says: 'the store is asked sixty times in a row',
    host: 'memory',
    expected: ['waiting/hints-make-no-tight-loop', 'waiting/zero-is-one-attempt'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async attempt(...args) {
          for (let more = 59; more > 0; more -= 1) {
            const attempt = await backend.attempt(...args);
            if (attempt.status === 'granted') return attempt;
          }
          return backend.attempt(...args);
        },
      }),
    ),
  },
  {
    name: 'polls-all-the-time',
    says: 'the store is polled every five milliseconds, also where it asked for a pause',
    host: 'memory',
    expected: ['waiting/hint-is-followed-by-attempt', 'waiting/falls-back-to-retry-after'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async attempt(...args) {
          const attempt = await backend.attempt(...args);
          return attempt.status === 'granted' ? attempt : { status: 'contended', retryAfterMs: 5 };
        },
      }),
    ),
  },
  {
    name: 'never-checks-again',
    says: 'no fallback check follows a lost hint',
    host: 'memory',
    expected: ['waiting/falls-back-to-retry-after'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async attempt(...args) {
          const attempt = await backend.attempt(...args);
          return attempt.status === 'granted' ? attempt : { status: 'contended' };
        },
      }),
    ),
  },
  {
    name: 'abandons-once',
    says: 'a grant that comes after the abandon is kept',
    host: 'memory',
    expected: ['waiting/silent-store-is-bounded'],
    calls: onCalls((backend) => {
      const abandoned = new Set<string>();
      return delegate(backend, {
        async abandon(request, call) {
          if (abandoned.has(request.acquisitionId)) return;
          abandoned.add(request.acquisitionId);
          await backend.abandon(request, call);
        },
      });
    }),
  },
  {
    name: 'lease-keeps-the-process-alive',
    says: 'a timer of every lease keeps the process alive',
    host: 'memory',
    expected: ['waiting/keeps-the-process-alive', 'close/lets-the-process-end'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        async acquire(options) {
          const lease = await lock.acquire(options);
          const timer = setTimeout(() => {}, 5_000);
          return delegateLease(lease, {
            release: () => {
              clearTimeout(timer);
              return lease.release();
            },
          });
        },
      })),
  },
  {
    name: 'waits-without-a-timer',
    says: 'a wait does not keep the process alive',
    host: 'memory',
    expected: ['waiting/keeps-the-process-alive'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        async acquire(options: AcquireOptions = {}): Promise<Lease> {
          const end = performance.now() + (options.waitMs ?? 10_000);
          for (;;) {
            const lease = await lock.tryAcquire(options);
            if (lease !== undefined) return lease;
            if (performance.now() >= end) return lock.acquire({ ...options, waitMs: 0 });
            await new Promise((resolve) => setTimeout(resolve, 2).unref());
          }
        },
      })),
  },
];
