import { isLockError } from '@locks/core';
import type { LockBackend, Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';

export const ownershipMutants: readonly Mutant[] = [
  {
    name: 'release-ignores-the-owner',
    says: 'a release frees the resource whoever holds it',
    expected: [
      'ownership/stale-holder-cannot-release',
      'ownership/stranger-cannot-release-or-renew',
      'ownership/second-release-frees-nobody',
      'idempotence/abandon-frees-once',
    ],
    backend: (backend) => ({
      async release({ request }, call) {
        const ended = await backend.forceRelease?.(request.resource, undefined, call);
        return ended?.length === 0 ? 'not-held' : 'released';
      },
    }),
  },
  {
    name: 'renewal-ignores-the-owner',
    says: 'a renewal extends any lease of the resource',
    expected: ['ownership/stale-holder-cannot-renew', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) => ({ renew: (items, call) => renewWhoeverHolds(backend, items, call) }),
  },
  {
    name: 'abandon-ignores-the-owner',
    says: 'an abandon frees the resource whoever holds it',
    expected: [
      'ownership/stranger-cannot-abandon',
      'idempotence/abandon-of-the-unknown',
      'idempotence/abandon-frees-once',
      'idempotence/late-abandon-of-the-expired',
      'exclusion/amid-random-faults',
    ],
    backend: (backend) => ({
      async abandon(request, call) {
        await backend.abandon(request, call);
        await backend.forceRelease?.(request.resource, undefined, call);
      },
    }),
  },
  {
    name: 'second-release-frees-again',
    says: 'a second release of a lease ends the hold of its successor',
    expected: ['ownership/second-release-is-a-no-op'],
    lease: (lease, locks) => {
      let released = false;
      return {
        async release() {
          if (released) await locks.forceRelease(lease.name);
          released = true;
          await lease.release();
        },
      };
    },
  },
  {
    name: 'release-hides-the-loss',
    says: 'the release of a lost lease resolves',
    expected: [
      'ownership/release-after-loss-reports',
      'ownership/stale-lease-learns-nothing',
      'ownership/force-release-frees',
      'loss/force-release-is-reported',
      'loss/eviction-is-reported',
    ],
    lease: (lease) => ({ release: () => ignoringLoss(lease.release()) }),
  },
];

async function ignoringLoss(release: Promise<void>): Promise<void> {
  try {
    await release;
  } catch (error) {
    if (!isLockError(error, 'LOCK_LOST')) throw error;
  }
}

async function renewWhoeverHolds(
  backend: LockBackend,
  items: readonly RenewItem[],
  call: Call,
): Promise<RenewalStatus[]> {
  const renew = async ({ grant, ttlMs }: RenewItem): Promise<RenewalStatus> => {
    const [holder] = (await backend.inspect(grant.request.resource, call)).holders;
    const acquisitionId = holder?.acquisitionId ?? grant.request.acquisitionId;
    const fencingToken = holder?.fencingToken ?? (grant.fencingToken as bigint);
    const other = { ...grant, fencingToken, request: { ...grant.request, acquisitionId } };
    const [renewalStatus] = await backend.renew([{ grant: other, ttlMs }], call);
    return renewalStatus ?? { status: 'unknown', error: new Error('no answer') };
  };
  return await Promise.all(items.map(renew));
}
