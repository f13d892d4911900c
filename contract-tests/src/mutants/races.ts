import { setImmediate as turn } from 'node:timers/promises';
import type { LockBackend, AcquireRequest, Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';

/** Mutants whose backends check the state, and act on it a moment later without another check. */
export const raceMutants: readonly Mutant[] = [
  {
    name: 'release-checks-then-frees',
    says: 'a release checks whether its acquisition holds, and frees the resource a moment later, also from a successor',
    expected: ['ownership/races-of-one-grant'],
    backend: (backend) => ({
      async release({ request }, call) {
        if (!(await holds(backend, request, call))) return 'not-held';
        await turn();
        await backend.forceRelease?.(request.resource, undefined, call);
        return 'released';
      },
    }),
  },
  {
    name: 'renewal-checks-then-takes',
    says: 'a renewal checks whether its acquisition holds, and a moment later takes the resource again where the hold has ended',
    expected: ['ownership/races-of-one-grant'],
    backend: (backend) => ({
      renew: (items, call) => Promise.all(items.map((item) => renewByTaking(backend, item, call))),
    }),
  },
  {
    name: 'takes-what-looks-over',
    says: 'an attempt that finds an expired hold takes the resource a moment later, also from a successor',
    expected: ['exclusion/one-wins-after-an-end'],
    backend: (backend) => {
      const { abandon, release } = backend;
      return {
        async attempt(request, enqueue, call) {
          const { resource } = request;
          const { holders, waiters } = await backend.inspect(resource, call);
          if (holders.length + waiters.length === 0 && unreleased.has(resource)) {
            await turn();
            await backend.forceRelease?.(resource, undefined, call);
          }
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') unreleased.set(resource, request.acquisitionId);
          return attempt;
        },
        abandon(request, call) {
          forget(request);
          return abandon.call(backend, request, call);
        },
        release(grant, call) {
          forget(grant.request);
          return release.call(backend, grant, call);
        },
      };
    },
  },
];

/** The last unreleased acquisition of each resource, over all clients. */
const unreleased = new Map<string, string>();

function forget({ resource, acquisitionId }: AcquireRequest): void {
  if (unreleased.get(resource) === acquisitionId) unreleased.delete(resource);
}

async function holds(backend: LockBackend, request: AcquireRequest, call: Call): Promise<boolean> {
  const { holders } = await backend.inspect(request.resource, call);
  return holders.some(({ acquisitionId }) => acquisitionId === request.acquisitionId);
}

async function renewByTaking(backend: LockBackend, item: RenewItem, call: Call): Promise<RenewalStatus> {
  const { request } = item.grant;
  const held = await holds(backend, request, call);
  await turn();
  const [renewalStatus] = await backend.renew([item], call);
  if (!held || renewalStatus?.status === 'held')
    return renewalStatus ?? { status: 'unknown', error: undefined };
  await backend.attempt({ ...request, steal: true }, false, call);
  return { status: 'held' };
}
