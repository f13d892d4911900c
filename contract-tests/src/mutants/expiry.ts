import type { LockBackend, AcquireRequest, Grant } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants, onRenewals, onRequests } from './on-grants.ts';

export const expiryMutants: readonly Mutant[] = [
  {
    name: 'leases-never-end',
    says: 'the store keeps an abandoned lease a thousand times longer',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'idempotence/ghost-lives-one-ttl',
      'renewal/recreates-nothing',
      'expiry/short-lived-tries-outlive-a-crash',
      'expiry/short-waits-outlive-a-crash',
      'fencing/rises-after-expiry',
      'shared/a-writer-follows-a-dead-reader',
      'shared/every-share-has-its-own-end',
    ],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 1_000 })),
  },
  {
    name: 'dead-holders-hold-on',
    says: 'the store keeps the lease of a dead process a hundred times longer',
    host: 'sqlite',
    expected: [
      'expiry/killed-holder-frees-in-time',
      'loss/frozen-process-learns-the-loss',
      'shared/a-killed-reader-frees-its-share',
    ],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 100 })),
  },
  {
    name: 'ends-by-wall-clocks',
    says: 'a client writes the end of its hold by its wall clock, and others compare it with their own',
    host: 'sqlite',
    expected: ['expiry/wall-clocks-do-not-count'],
    backend: (backend) => ({
      // One table for all processes, as on a server.
      capabilities: { ...backend.capabilities, reach: 'network' },
      async attempt(request, enqueue, call) {
        const { holders } = await backend.inspect(request.resource, call);
        for (const { label, acquisitionId } of holders)
          if (Number(label) < Date.now()) await backend.forceRelease?.(request.resource, acquisitionId, call);
        return backend.attempt({ ...request, label: `${Date.now() + request.ttlMs}` }, enqueue, call);
      },
    }),
  },
  {
    name: 'first-end-is-not-written',
    says: 'the first hold of a name ends only for clients that have seen it for its ttl',
    expected: ['expiry/short-lived-tries-outlive-a-crash', 'expiry/short-waits-outlive-a-crash'],
    backend: (backend) => endingForObservers(backend, (grants) => grants === 1),
  },
  {
    name: 'leases-end-early',
    says: 'the store ends a lease at a fifth of its ttl',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'expiry/holder-ends-before-the-store',
      'expiry/reported-before-the-next-holds',
    ],
    backend: (backend) =>
      onRequests(backend, (request) => ({ ...request, ttlMs: Math.ceil(request.ttlMs / 5) })),
  },
  {
    name: 'no-drift-margin',
    says: 'a holder counts its lease as valid to the very end, without a margin',
    expected: ['expiry/holder-ends-before-the-store'],
    calls: (backend) =>
      onGrants(backend, (grant, { ttlMs }) => ({
        ...grant,
        countedFrom: grant.countedFrom + ttlMs * 0.01 + 2,
      })),
  },
  {
    name: 'counts-from-the-reply',
    says: 'a lease counts from the arrival of its reply',
    expected: ['expiry/slow-reply-costs-validity', 'expiry/late-grant-is-never-handed-out'],
    calls: (backend) => onGrants(backend, (grant, _, call) => ({ ...grant, countedFrom: call.now() })),
  },
  {
    name: 'abandons-nothing',
    says: 'core never abandons an id that it gave up',
    expected: [
      'expiry/late-grant-is-never-handed-out',
      'idempotence/lost-reply-leaves-no-hold',
      'idempotence/late-grant-is-abandoned',
      'idempotence/unanswered-abandon-is-sent-again',
      'renewal/unconfirmed-is-abandoned',
    ],
    calls: () => ({ abandon: () => Promise.resolve() }),
  },
  {
    name: 'loss-is-reported-late',
    says: 'the signal aborts half a second after the loss',
    expected: ['expiry/reported-before-the-next-holds', 'loss/blocked-loop-aborts-the-signal'],
    lease: (lease) => {
      const late = new AbortController();
      const abort = (): void => void setTimeout(() => late.abort(lease.signal.reason), 500);
      lease.signal.addEventListener('abort', abort, { once: true });
      return {
        get signal() {
          return late.signal;
        },
      };
    },
  },
  {
    name: 'hand-offs-stay-short',
    says: 'a lease from a hand-off never lasts longer than a second',
    expected: [
      'expiry/hand-off-lasts-its-ttl',
      'expiry/hand-off-behind-a-steal-lasts-its-ttl',
      'expiry/hand-off-to-readers-lasts-its-ttl',
      'expiry/hand-off-of-permits-lasts-its-ttl',
    ],
    calls: withShortHandOffs,
  },
  {
    name: 'late-answers-stay-late',
    says: 'a lease whose answer came late is delivered with what is left of it',
    expected: ['expiry/late-answer-lasts-its-ttl'],
    calls(backend) {
      const fresh = new Map<string, Grant>();
      return {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') fresh.set(request.acquisitionId, attempt.grant);
          return attempt;
        },
        // The first renewal of a lease is answered with what it has, and is not sent.
        async renew(items, call) {
          if (!items.every(({ grant }) => fresh.delete(grant.request.acquisitionId)))
            return backend.renew(items, call);
          return items.map(({ grant, ttlMs }) => ({
            status: 'held',
            validForMs: grant.countedFrom + ttlMs - call.now(),
          }));
        },
      };
    },
  },
  {
    name: 'hand-offs-to-processes-stay-short',
    says: 'a lease from a hand-off to another process never lasts longer than a second',
    host: 'sqlite',
    expected: ['expiry/stall-after-a-hand-off'],
    backend: withShortHandOffs,
  },
  {
    name: 'one-ttl-renews-all',
    says: 'all leases of a renewal get the ttl of the first',
    expected: ['expiry/store-keeps-what-it-reported'],
    backend: (backend) => onRenewals(backend, ({ ttlMs }, [first]) => first?.ttlMs ?? ttlMs),
  },
];

/** The last hold of each name, as all clients of this process know it. */
interface LastHold {
  /** `undefined`: it was released. */
  readonly id: string | undefined;
  readonly ttlMs: number;
  readonly grants: number;
}

const lastHolds = new Map<string, LastHold>();

/**
 * A store without a clock: who has just come sees a hold that is over as one that has begun.
 *
 * @param isUndated - whether a hold is such a one, by how often its name was granted
 */
function endingForObservers(backend: LockBackend, isUndated: (grants: number) => boolean): LockBackend {
  const seenSince = new Map<string, number>();
  const isBlocked = ({ resource, acquisitionId }: AcquireRequest): boolean => {
    const last = lastHolds.get(resource);
    if (last?.id === undefined || last.id === acquisitionId || !isUndated(last.grants)) return false;
    const since = seenSince.get(last.id) ?? performance.now();
    seenSince.set(last.id, since);
    return performance.now() < since + last.ttlMs;
  };
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      if (isBlocked(request)) return { status: 'contended' };
      const attempt = await backend.attempt(request, enqueue, call);
      const { resource, acquisitionId: id, ttlMs } = request;
      const { grants = 0 } = lastHolds.get(resource) ?? {};
      if (attempt.status === 'granted') lastHolds.set(resource, { id, ttlMs, grants: grants + 1 });
      return attempt;
    },
    async awaitTurn(request, call) {
      if (!isBlocked(request)) return await backend.awaitTurn?.(request, call);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return undefined;
    },
    async release(grant, call) {
      const { resource, acquisitionId } = grant.request;
      const last = lastHolds.get(resource);
      if (last?.id === acquisitionId) lastHolds.set(resource, { ...last, id: undefined });
      return await backend.release(grant, call);
    },
  });
}

function withShortHandOffs(backend: LockBackend): LockBackend {
  let waited = false;
  return delegate(backend, {
    async attempt(...args) {
      const attempt = await backend.attempt(...args);
      if (attempt.status !== 'granted') waited = true;
      const isShort = waited && attempt.status === 'granted';
      return isShort ? { ...attempt, grant: { ...attempt.grant, validForMs: 1_000 } } : attempt;
    },
    async awaitTurn(...args) {
      const grant = await backend.awaitTurn?.(...args);
      return grant && { ...grant, validForMs: 1_000 };
    },
    renew: async (...args) =>
      (await backend.renew(...args)).map((renewalStatus) =>
        renewalStatus.status === 'held' ? { ...renewalStatus, validForMs: 1_000 } : renewalStatus,
      ),
  });
}
