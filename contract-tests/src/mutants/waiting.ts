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
