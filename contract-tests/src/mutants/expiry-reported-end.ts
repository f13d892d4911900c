import type { LockBackend, AcquireRequest, Call } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';
import { onRenewals } from './on-grants.ts';

const expected = ['expiry/store-keeps-what-it-reported'];

/** Mutants whose store ends holds of one origin at another time than it reports. */
export const expiryReportedEndMutants: readonly Mutant[] = [
  {
    name: 'one-ttl-renews-all',
    says: 'all leases of a renewal get the ttl of the first',
    expected,
    backend: (backend) => onRenewals(backend, ({ ttlMs }, [first]) => first?.ttlMs ?? ttlMs),
  },
  {
    name: 'a-steal-keeps-the-end',
    says: 'a stolen hold keeps the end of the former hold',
    expected,
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const [former] = request.steal === true ? await holders(backend, request, call) : [];
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status === 'granted' && former?.acquisitionId !== request.acquisitionId)
          await endAfter(backend, request, former?.expiresInMs, call);
        return attempt;
      },
    }),
  },
  {
    name: 'a-hidden-end',
    says: 'a hold from a hand-off ends after a moment unless it is renewed, and the store does not report it',
    expected,
    backend: (backend) => ({
      async awaitTurn(request, call) {
        const grant = await backend.awaitTurn?.(request, call);
        if (grant !== undefined) await endAfter(backend, request, 50, call);
        return grant;
      },
    }),
  },
  {
    name: 'one-ttl-for-one-step',
    says: 'all holds of one attemptMany have the shortest ttl',
    expected,
    backend: (backend) => ({
      async attemptMany(requests, call) {
        const grants = await backend.attemptMany?.(requests, call);
        const shortest = Math.min(...requests.map(({ ttlMs }) => ttlMs));
        for (const { request } of grants ?? []) await endAfter(backend, request, shortest, call);
        return grants;
      },
    }),
  },
  {
    name: 'downgraded-for-a-moment',
    says: 'a downgraded hold ends after a moment unless it is renewed',
    expected,
    backend: (backend) => ({
      async downgrade(grant, call) {
        const renewalStatus = (await backend.downgrade?.(grant, call)) ?? { status: 'held' };
        if (renewalStatus.status === 'held') await endAfter(backend, grant.request, 50, call);
        return renewalStatus;
      },
    }),
  },
];

async function holders(backend: LockBackend, { resource }: AcquireRequest, call: Call) {
  return (await backend.inspect(resource, call)).holders;
}

/** Moves the end of a hold without the knowledge of its holder. */
async function endAfter(
  backend: LockBackend,
  request: AcquireRequest,
  ttlMs: number | undefined,
  call: Call,
): Promise<void> {
  if (ttlMs === undefined) return;
  const hold = (await holders(backend, request, call)).find(
    ({ acquisitionId }) => acquisitionId === request.acquisitionId,
  );
  // Nobody waits for the end of what has ended.
  if (hold?.fencingToken === undefined) return;
  const grant = { request, fencingToken: hold.fencingToken, countedFrom: 0 };
  await backend.renew([{ grant, ttlMs }], call);
}
