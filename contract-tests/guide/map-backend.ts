import { type AcquireRequest, type Grant, type LockBackend, refuseAfterClose } from '@locks/core/backend';
import { defineHarness } from '@locks/core/conformance';

const holds = new Map<string, { grant: Grant; ends: number }>(); // the store
let lastToken = 0n;

function holdOf(resource: string) {
  const hold = holds.get(resource);
  return hold !== undefined && hold.ends > performance.now() ? hold : undefined;
}
function ownHold({ resource, acquisitionId }: AcquireRequest) {
  const hold = holdOf(resource);
  return hold?.grant.request.acquisitionId === acquisitionId ? hold : undefined;
}

const mapBackend = () =>
  refuseAfterClose<LockBackend>({
    spec: 'locks-backend/1',
    name: 'map',
    capabilities: {
      tenure: 'lease',
      renewal: 'own-client',
      reach: 'process',
      modes: ['exclusive'],
      order: 'none',
      fencing: 'volatile',
      ttl: { minMs: 20, stepMs: 1 },
      features: [],
    },
    async attempt(request, _enqueue, call) {
      const own = ownHold(request);
      if (own !== undefined) return { status: 'granted', grant: own.grant }; // repeated: the same grant
      if (holdOf(request.resource) !== undefined) return { status: 'contended', retryAfterMs: 10 };
      const grant = { request, fencingToken: ++lastToken, countedFrom: call.now() };
      holds.set(request.resource, { grant, ends: performance.now() + request.ttlMs });
      return { status: 'granted', grant };
    },
    async abandon(request) {
      if (ownHold(request) !== undefined) holds.delete(request.resource);
    },
    renew: async (items) =>
      items.map(({ grant, ttlMs }) => {
        const own = ownHold(grant.request);
        if (own?.grant.fencingToken !== grant.fencingToken) return { status: 'lost', reason: 'taken-over' };
        holds.set(grant.request.resource, { grant, ends: performance.now() + ttlMs });
        return { status: 'held' };
      }),
    async release({ request }) {
      return ownHold(request) !== undefined && holds.delete(request.resource) ? 'released' : 'not-held';
    },
    async inspect(name) {
      const grant = holdOf(name)?.grant;
      const holders = grant === undefined ? [] : [{ ...grant.request, fencingToken: grant.fencingToken }];
      return { name, holders, waiters: [] };
    },
    isRetryable: () => false,
    async close() {},
  });

export default defineHarness({
  module: import.meta.url,
  createBackend: mapBackend,
  createBackendUnder: 'none', // no prefix stands before the names
  faults: { evict: async (resource) => void holds.delete(resource), corrupt: 'none' }, // nobody else writes there
});
