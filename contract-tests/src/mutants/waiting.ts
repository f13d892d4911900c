import { LockError, isLockError, type AcquireOptions, type Lease } from '@locks/core';
import { delegateLease } from './delegate.ts';
import { type Mutant } from './mutant.ts';
import { pause, untilGivenUp } from './on-calls.ts';
import { onRequests } from './on-grants.ts';

export const waitingMutants: readonly Mutant[] = [
  {
    name: 'hears-late',
    says: 'a waiter hears of its turn more than a second late',
    expected: [
      'waiting/granted-after-release',
      'waiting/infinity-waits-until-released',
      'shared/last-reader-wakes-the-writer',
    ],
    backend: () => ({
      awaitTurn: (_, call) => Promise.race([untilGivenUp(call), pause(1_200).then(() => undefined)]),
    }),
  },
  {
    name: 'loses-a-wake-up-now-and-then',
    says: 'every hundredth wake-up is lost',
    expected: ['waiting/no-wake-up-is-lost'],
    backend(backend) {
      let turns = 0;
      return {
        async awaitTurn(request, call) {
          const grant = await backend.awaitTurn?.(request, call);
          turns += 1;
          return turns % 100 === 0 ? await untilGivenUp(call) : grant;
        },
      };
    },
  },
  {
    name: 'infinity-is-a-number',
    says: 'waitMs Infinity is taken for a tenth of a second',
    expected: ['waiting/infinity-waits-until-released'],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options?.waitMs === Infinity ? { ...options, waitMs: 100 } : options),
    }),
  },
  {
    name: 'waits-too-long',
    says: 'a wait lasts two seconds longer than waitMs',
    expected: [
      'waiting/ends-within-wait-ms',
      'waiting/silent-store-is-bounded',
      'faults/transient-failure-is-retried',
    ],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options?.waitMs ? { ...options, waitMs: options.waitMs + 2_000 } : options),
    }),
  },
  {
    name: 'gives-up-early',
    says: 'a wait ends after a tenth of its time',
    expected: ['waiting/ends-within-wait-ms'],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options?.waitMs ? { ...options, waitMs: options.waitMs / 10 } : options),
    }),
  },
  {
    name: 'timeout-says-nothing',
    says: 'a timeout names neither the holder nor what nesting needs',
    expected: ['waiting/ends-within-wait-ms', 'waiting/timeout-explains-nesting'],
    lock: (lock, resource) => {
      const bare = (error: unknown): never => {
        throw isLockError(error, 'LOCK_TIMEOUT')
          ? new LockError('LOCK_TIMEOUT', 'timed out', { lockName: resource })
          : error;
      };
      return {
        acquire: (options) => lock.acquire(options).catch(bare),
        run: (work, options) => lock.run(work, options).catch(bare),
      };
    },
  },
  {
    name: 'abandon-does-nothing',
    says: 'a waiter that gives up stays in the queue, and keeps a later grant',
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
    backend: () => ({ abandon: () => Promise.resolve() }),
  },
  {
    name: 'tries-queue-up',
    says: 'an attempt that must not queue does so',
    expected: ['waiting/zero-is-one-attempt'],
    backend: (backend) => ({ attempt: (request, _, call) => backend.attempt(request, true, call) }),
  },
  {
    name: 'tries-twice',
    says: 'tryAcquire tries again at once',
    expected: ['waiting/zero-is-one-attempt'],
    lock: (lock) => ({
      tryAcquire: async (options) => (await lock.tryAcquire(options)) ?? (await lock.tryAcquire(options)),
    }),
  },
  {
    name: 'hides-its-waiters',
    says: 'inspect never shows waiters',
    expected: ['waiting/waiters-are-shown-in-order'],
    backend: (backend) => ({
      inspect: async (...args) => ({ ...(await backend.inspect(...args)), waiters: [] }),
    }),
  },
  {
    name: 'loses-labels',
    says: 'the label never reaches the store',
    expected: ['waiting/ends-within-wait-ms', 'waiting/waiters-are-shown-in-order'],
    backend: (backend) => ({
      attempt: (request, enqueue, call) => {
        const { label: _, ...unlabelled } = request;
        return backend.attempt(unlabelled, enqueue, call);
      },
    }),
  },
  {
    name: 'ignores-hints',
    says: 'a hint is not followed by an attempt',
    expected: ['waiting/hint-is-followed-by-attempt', 'waiting/hints-make-no-tight-loop'],
    calls: (backend) => ({
      awaitTurn: async (request, call) =>
        (await backend.awaitTurn?.(request, call)) ?? (await untilGivenUp(call)),
    }),
  },
  {
    name: 'asks-sixty-times',
    says: 'the store is asked sixty times in a row',
    expected: ['waiting/hints-make-no-tight-loop', 'waiting/zero-is-one-attempt'],
    calls: (backend) => ({
      async attempt(...args) {
        for (let more = 59; more > 0; more -= 1) {
          const attempt = await backend.attempt(...args);
          if (attempt.status === 'granted') return attempt;
        }
        return backend.attempt(...args);
      },
    }),
  },
  {
    name: 'polls-all-the-time',
    says: 'the store is polled every five milliseconds, also where it asked for a pause',
    expected: ['waiting/hint-is-followed-by-attempt', 'waiting/falls-back-to-retry-after'],
    calls: (backend) => ({
      async attempt(...args) {
        const attempt = await backend.attempt(...args);
        return attempt.status === 'granted' ? attempt : { status: 'contended', retryAfterMs: 5 };
      },
    }),
  },
  {
    name: 'never-checks-again',
    says: 'no fallback check follows a lost hint',
    expected: ['waiting/falls-back-to-retry-after'],
    calls: (backend) => ({
      async attempt(...args) {
        const attempt = await backend.attempt(...args);
        return attempt.status === 'granted' ? attempt : { status: 'contended' };
      },
    }),
  },
  {
    name: 'abandons-once',
    says: 'a grant that comes after the abandon is kept',
    expected: ['waiting/silent-store-is-bounded'],
    calls: (backend) => {
      const abandoned = new Set<string>();
      return {
        async abandon(request, call) {
          if (abandoned.has(request.acquisitionId)) return;
          abandoned.add(request.acquisitionId);
          await backend.abandon(request, call);
        },
      };
    },
  },
  {
    name: 'lease-keeps-the-process-alive',
    says: 'a timer of every lease keeps the process alive',
    expected: ['waiting/keeps-the-process-alive', 'close/lets-the-process-end'],
    lock: (lock) => ({
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
    }),
  },
  {
    name: 'waits-without-a-timer',
    says: 'a wait does not keep the process alive',
    expected: ['waiting/keeps-the-process-alive'],
    lock: (lock) => ({
      async acquire(options: AcquireOptions = {}): Promise<Lease> {
        const { waitMs = 10_000, ...rest } = options;
        const end = performance.now() + waitMs;
        for (;;) {
          const lease = await lock.tryAcquire(rest);
          if (lease !== undefined) return lease;
          if (performance.now() >= end) return lock.acquire({ ...options, waitMs: 0 });
          await new Promise((resolve) => setTimeout(resolve, 2).unref());
        }
      },
    }),
  },
  {
    name: 'each-waiter-looks-up',
    says: 'every waiter that gives up asks who holds the resource',
    expected: ['waiting/one-look-up-for-all'],
    calls: (backend) => ({
      awaitTurn: async (request, call) => {
        const turn = await Promise.race([backend.awaitTurn?.(request, call), untilGivenUp(call)]);
        if (call.signal?.aborted) void backend.inspect(request.resource, call).catch(() => {});
        return turn;
      },
    }),
  },
  {
    name: 'holders-alone-are-none',
    says: 'inspect without waiters shows no holders',
    expected: ['waiting/holders-without-waiters'],
    backend: (backend) => ({
      inspect: async (resource, call, options) => {
        const state = await backend.inspect(resource, call, options);
        return options?.waiters === false ? { ...state, holders: [] } : state;
      },
    }),
  },
  {
    name: 'the-limit-is-ignored',
    says: 'everybody may wait, whatever maxWaiters says',
    expected: ['waiting/more-than-the-limit-are-refused', 'waiting/the-limit-holds-in-a-storm'],
    backend: (backend) =>
      onRequests(backend, (request) => {
        const { maxWaiters: _, ...unlimited } = request;
        return unlimited;
      }),
  },
  {
    name: 'the-limit-counts-too-much',
    says: 'one less may wait than maxWaiters says',
    expected: ['waiting/more-than-the-limit-are-refused', 'waiting/the-limit-holds-in-a-storm'],
    backend: (backend) =>
      onRequests(backend, ({ maxWaiters, ...request }) =>
        maxWaiters === undefined ? request : { ...request, maxWaiters: Math.max(0, maxWaiters - 1) },
      ),
  },
  {
    name: 'a-waiter-is-refused-later',
    says: 'the repeated attempt of a waiter counts it as one of the others',
    expected: ['waiting/who-waits-is-not-refused'],
    backend: (backend) => {
      const asked = new Set<string>();
      return {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          const isRepeated = asked.has(request.acquisitionId);
          asked.add(request.acquisitionId);
          return isRepeated && request.maxWaiters !== undefined && attempt.status === 'contended'
            ? { status: 'full' }
            : attempt;
        },
      };
    },
  },
  {
    name: 'a-full-queue-stays-full',
    says: 'a queue that was full stays full until the holder releases, whoever in it died',
    host: 'sqlite',
    expected: ['waiting/dead-waiters-do-not-count'],
    backend: (backend) => {
      const full = new Set<string>();
      return {
        async attempt(request, enqueue, call) {
          const queue = `${request.resource} ${request.maxWaiters}`;
          if (enqueue && full.has(queue)) return { status: 'full' };
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'full') full.add(queue);
          return attempt;
        },
        release(grant, call) {
          full.clear();
          return backend.release(grant, call);
        },
      };
    },
  },
  {
    name: 'who-is-refused-stays',
    says: 'an acquire that is refused for its maxWaiters stays in the queue',
    expected: ['waiting/more-than-the-limit-are-refused'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status !== 'full') return attempt;
        const { maxWaiters: _, ...unlimited } = request;
        await backend.attempt(unlimited, true, call);
        return attempt;
      },
    }),
  },
];
