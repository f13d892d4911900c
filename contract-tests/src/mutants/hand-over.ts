import type { Call } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants, onRequests } from './on-grants.ts';

const HOLD_MS = 60_000;

export const handOverMutants: readonly Mutant[] = [
  {
    name: 'anyone-adopts',
    says: 'an adoption takes the lock from whoever holds it',
    expected: ['hand-over/is-adopted-once', 'hand-over/ends-by-its-ttl', 'hand-over/not-after-a-steal'],
    backend: (backend) =>
      onRequests(backend, ({ adopts, ...request }) =>
        adopts === undefined ? request : { ...request, steal: true },
      ),
  },
  {
    name: 'adopts-what-is-free',
    says: 'an adoption takes a lock that nobody holds',
    expected: ['hand-over/is-adopted-once', 'hand-over/ends-by-its-ttl', 'hand-over/not-after-a-steal'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (request.adopts === undefined || attempt.status === 'granted') return attempt;
        const { adopts: _, ...plain } = request;
        return backend.attempt(plain, false, call);
      },
    }),
  },
  {
    name: 'adopts-behind-the-queue',
    says: 'an adoption releases the lock and attempts it: a waiter comes in between',
    expected: ['hand-over/goes-on-elsewhere'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { adopts, ...plain } = request;
        if (adopts === undefined) return backend.attempt(request, enqueue, call);
        await backend.forceRelease?.(request.resource, adopts, call);
        return backend.attempt(plain, false, call);
      },
    }),
  },
  {
    name: 'an-adopted-lease-keeps-its-token',
    says: 'the adopted lease has the token of the one that was handed over',
    expected: ['hand-over/tokens-rise'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { holders } = await backend.inspect(request.resource, call);
        const attempt = await backend.attempt(request, enqueue, call);
        const token = holders.find(({ acquisitionId }) => acquisitionId === request.adopts)?.fencingToken;
        if (attempt.status !== 'granted' || token === undefined) return attempt;
        return { status: 'granted', grant: { ...attempt.grant, fencingToken: token } };
      },
    }),
  },
  {
    name: 'renews-what-it-handed-over',
    says: 'the process that handed a lease over goes on renewing it',
    expected: ['hand-over/ends-by-its-ttl'],
    backend: (backend) => {
      const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
      const timers = new Set<NodeJS.Timeout>();
      const renewing = onGrants(backend, (grant) => {
        if (grant.request.ttlMs < HOLD_MS) {
          const renew = () => void backend.renew([{ grant, ttlMs: HOLD_MS }], call).catch(() => {});
          timers.add(setInterval(renew, 20).unref());
        }
        return grant;
      });
      return delegate(renewing, {
        close() {
          for (const timer of timers) clearInterval(timer);
          return backend.close();
        },
      });
    },
  },
  {
    name: 'a-repeated-adoption-finds-nothing',
    says: 'an adoption that is sent again is answered as if another had adopted the lease',
    expected: ['hand-over/lost-reply-of-an-adoption'],
    backend: (backend) => {
      const answered = new Set<string>();
      return {
        async attempt(request, enqueue, call) {
          if (request.adopts !== undefined && answered.has(request.acquisitionId))
            return { status: 'contended' };
          const attempt = await backend.attempt(request, enqueue, call);
          answered.add(request.acquisitionId);
          return attempt;
        },
      };
    },
  },
];
