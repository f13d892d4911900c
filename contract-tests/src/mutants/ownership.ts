import { isLockError, type Lease, type LockManager, type MultiLease } from '@locks/core';
import type { LockBackend, Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import { delegateLease } from './delegate.ts';
import { delegate } from './delegate.ts';
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
    name: 'loss-names-the-successor',
    says: 'the answer to a lost renewal has the acquisition id of the successor',
    expected: ['ownership/stale-holder-cannot-renew'],
    backend: (backend) => ({
      async renew(items, call) {
        const renewalStatuses = await backend.renew(items, call);
        const states = await Promise.all(
          items.map(({ grant }) => backend.inspect(grant.request.resource, call)),
        );
        return renewalStatuses.map((renewalStatus, index) => ({
          ...renewalStatus,
          holders: states[index]?.holders,
        }));
      },
    }),
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
  {
    name: 'released-lease-looks-valid',
    says: 'a lease reads the same after its release',
    expected: ['ownership/released-lease-is-not-valid', 'renewal/released-lease-is-not-renewed'],
    lease: looksValidForEver,
  },
  {
    name: 'run-hides-the-loss',
    says: 'run gives the value of the work though the lease was lost',
    expected: ['ownership/run-reports-the-loss'],
    lock: (lock) => ({
      run: <T>(work: (lease: Lease) => T | Promise<T>) =>
        lock.run(work).catch((error: unknown) => {
          if (isLockError(error, 'LOCK_LOST') && 'result' in error) return error.result as T;
          throw error;
        }),
    }),
  },
  {
    name: 'run-releases-in-a-finally',
    says: 'the error of the release hides the error of the work',
    expected: ['ownership/work-error-wins-over-loss', 'ownership/run-reports-the-loss'],
    lock: (lock) => ({
      async run(work, options) {
        const lease = await lock.acquire(options);
        try {
          return await work(lease);
        } finally {
          await lease.release();
        }
      },
    }),
  },
  {
    name: 'run-keeps-what-failed',
    says: 'run releases only when the work succeeds',
    expected: ['ownership/run-releases-whatever-happens'],
    lock: (lock) => ({
      async run(work, options) {
        const lease = await lock.acquire(options);
        const value = await work(lease);
        await lease.release();
        return value;
      },
    }),
  },
  {
    name: 'disposal-is-silent',
    says: 'disposal of a lost lease ends without an error',
    expected: ['ownership/disposal-tells-the-loss'],
    lease: (lease) => ({ [Symbol.asyncDispose]: () => lease.release().catch(() => {}) }),
  },
  {
    name: 'disposal-of-a-set-is-silent',
    says: 'disposal of a set of which a lease was lost ends without an error',
    expected: ['ownership/disposal-of-a-set-tells-the-loss'],
    locks: (locks) => ({
      all: ((members: Parameters<LockManager['all']>[0]) => {
        const set = locks.all(members);
        const silent = (leases: MultiLease): MultiLease =>
          Object.defineProperty(leases, Symbol.asyncDispose, {
            value: () => leases.release().catch(() => {}),
          });
        const silentSet: typeof set = {
          locks: set.locks,
          acquire: async (options) => silent(await set.acquire(options)),
          tryAcquire: async (options) => {
            const leases = await set.tryAcquire(options);
            return leases && silent(leases);
          },
          run: (work, options) => set.run(work, options),
        };
        return silentSet;
      }) as LockManager['all'],
    }),
  },
  {
    name: 'renewal-ignores-the-owner-unseen',
    says: 'a renewal of a lost hold is answered with lost, and extends the hold of the successor; inspect shows no ends',
    expected: ['ownership/stale-holder-cannot-renew', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) => {
      return withoutEnds(
        delegate(backend, {
          async renew(items, call) {
            const renewalStatuses = await backend.renew(items, call);
            await renewWhoeverHolds(backend, items, call);
            return renewalStatuses;
          },
        }),
      );
    },
  },
  {
    name: 'release-is-never-sure',
    says: 'a release of an ended hold is answered with unknown, though it was sent once',
    expected: ['ownership/stale-holder-cannot-release', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) => ({
      async release(grant, call) {
        const answer = await backend.release(grant, call);
        return answer === 'not-held' ? 'unknown' : answer;
      },
    }),
  },
];

async function ignoringLoss(release: Promise<void>): Promise<void> {
  try {
    await release;
  } catch (error) {
    if (!isLockError(error, 'LOCK_LOST')) throw error;
  }
}

function looksValidForEver(lease: Lease): Lease {
  return delegateLease(lease, {
    get validForMs() {
      return 1_000;
    },
    assertValid: () => {},
  });
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

/** A backend as of a store that cannot show when a hold ends. */
function withoutEnds(backend: LockBackend): LockBackend {
  return delegate(backend, {
    async inspect(resource, call) {
      const state = await backend.inspect(resource, call);
      const holders = state.holders.map((holder) => {
        const { expiresInMs: _, ...rest } = holder;
        return rest;
      });
      return { ...state, holders };
    },
  });
}
