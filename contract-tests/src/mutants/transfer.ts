import type { Mutant } from './mutant.ts';
import { onRequests } from './on-grants.ts';

const HOLD_MS = 60_000;
/** The tokens of all acquisitions, as the clients of one case believe. */
const tokens = new Map<string, bigint | undefined>();

export const transferMutants: readonly Mutant[] = [
  {
    name: 'anyone-adopts',
    says: 'an adoption takes the lock from whoever holds it',
    expected: ['transfer/is-adopted-once', 'transfer/ends-by-its-ttl', 'transfer/not-after-a-steal'],
    backend: (backend) =>
      onRequests(backend, ({ adopts, ...request }) =>
        adopts === undefined ? request : { ...request, steal: true },
      ),
  },
  {
    name: 'adopts-by-what-is-shown',
    says: 'an adoption needs only the part of the id that inspect shows',
    expected: ['transfer/needs-its-ticket'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { adopts } = request;
        if (adopts === undefined) return backend.attempt(request, enqueue, call);
        const { holders } = await backend.inspect(request.resource, call);
        const found = holders.find(({ acquisitionId }) => acquisitionId.slice(0, 20) === adopts.slice(0, 20));
        return backend.attempt({ ...request, adopts: found?.acquisitionId ?? adopts }, enqueue, call);
      },
    }),
  },
  {
    name: 'keeps-a-lease-on-its-way-for-longer',
    says: 'a lease that was transferred lasts for longer than its ticket says',
    expected: ['transfer/not-after-its-time', 'transfer/ends-by-its-ttl'],
    backend: (backend) =>
      onRequests(backend, (request) =>
        request.adopts === undefined ? request : { ...request, ttlMs: HOLD_MS },
      ),
  },
  {
    name: 'adopts-what-is-free',
    says: 'an adoption takes a lock that nobody holds',
    expected: ['transfer/is-adopted-once', 'transfer/ends-by-its-ttl', 'transfer/not-after-a-steal'],
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
    expected: ['transfer/goes-on-elsewhere'],
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
    says: 'the adopted lease has the token of the one that was transferred',
    expected: ['transfer/tokens-rise'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status !== 'granted') return attempt;
        const { grant } = attempt;
        const fencingToken = tokens.get(request.adopts ?? '') ?? grant.fencingToken;
        tokens.set(request.acquisitionId, fencingToken);
        return {
          status: 'granted',
          grant: { ...grant, ...(fencingToken !== undefined && { fencingToken }) },
        };
      },
    }),
  },
  {
    name: 'a-repeated-adoption-finds-nothing',
    says: 'an adoption that is sent again is answered as if another had adopted the lease',
    expected: ['transfer/lost-reply-of-an-adoption'],
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
