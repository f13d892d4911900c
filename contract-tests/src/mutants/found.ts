import type { LockBackend, RenewalStatus } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

/** Errors of the kinds that simulation, lab and random faults found in backends: docs/track-record.json. */
export const foundMutants: readonly Mutant[] = [
  {
    name: 'late-renewal-shortens',
    says: 'a renewal that is sent again arrives after a later one, and sets the end that it asked for',
    expected: ['renewal/renew-pushes-the-end', 'expiry/holder-ends-before-the-store'],
    backend(backend) {
      const former = new Map<string, number>();
      return {
        async renew(items, call) {
          const renewalStatuses = await backend.renew(items, call);
          const again = items.map(({ grant, ttlMs }) => {
            const { acquisitionId, ttlMs: first } = grant.request;
            const earlier = former.get(acquisitionId) ?? first;
            former.set(acquisitionId, ttlMs);
            return { grant, ttlMs: earlier };
          });
          await backend.renew(again, call);
          return renewalStatuses;
        },
      };
    },
  },
  {
    name: 'hand-off-counts-from-its-message',
    says: 'a lease from a hand-off counts from the arrival of its message',
    expected: ['expiry/slow-reply-costs-validity'],
    calls: (backend) => ({
      async awaitTurn(request, call) {
        const grant = await backend.awaitTurn?.(request, call);
        return grant && { ...grant, countedFrom: call.now() };
      },
    }),
  },
  {
    name: 'downgraded-is-not-renewed',
    says: 'renewals of a downgraded hold are answered with held, and extend nothing',
    expected: ['expiry/store-keeps-what-it-reported'],
    backend(backend) {
      const downgraded = new Set<string>();
      const { downgrade } = backend;
      if (downgrade === undefined) return backend;
      return {
        async downgrade(grant, call) {
          downgraded.add(grant.request.acquisitionId);
          return await downgrade.call(backend, grant, call);
        },
        renew: (items, call) =>
          eachAlone(items, async (item) => {
            if (downgraded.has(item.grant.request.acquisitionId)) return { status: 'held' };
            return (await backend.renew([item], call))[0] as RenewalStatus;
          }),
      };
    },
  },
  {
    name: 'tokens-begin-again',
    says: 'the tokens of a resource begin again when it was free',
    expected: ['fencing/rises-over-holders', 'fencing/rises-over-clients', 'fencing/renewal-keeps-it'],
    backend: tokensBeginAgain,
  },
  {
    name: 'abandoned-in-part',
    says: 'an abandon ends the hold of its acquisition, and leaves its place in the queue',
    expected: ['waiting/timeout-leaves-nothing'],
    backend: (backend) => ({
      async abandon(request, call) {
        const { holders } = await backend.inspect(request.resource, call);
        if (holders.some(({ acquisitionId }) => acquisitionId === request.acquisitionId))
          await backend.abandon(request, call);
      },
    }),
  },
];

async function eachAlone<T, U>(items: readonly T[], work: (item: T) => Promise<U>): Promise<U[]> {
  return await Promise.all(items.map(work));
}

function tokensBeginAgain(backend: LockBackend): LockBackend {
  const counted = onGrants(backend, (grant, { resource }) => {
    const fencingToken = (lastTokens.get(resource) ?? 0n) + 1n;
    lastTokens.set(resource, fencingToken);
    return { ...grant, fencingToken };
  });
  return delegate(counted, {
    async release(grant, call) {
      const released = await backend.release(grant, call);
      const { holders } = await backend.inspect(grant.request.resource, call);
      if (holders.length === 0) lastTokens.delete(grant.request.resource);
      return released;
    },
  });
}

/** Of all clients of a process. */
const lastTokens = new Map<string, bigint>();
