import { isLockError, type Lease } from '@locks/core';
import { delegate, delegateLease, overLeases, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const ownershipMutants: readonly Mutant[] = [
  {
    name: 'release-ignores-the-owner',
    says: 'a release frees the resource whoever holds it',
    host: 'memory',
    expected: [
      'ownership/stale-holder-cannot-release',
      'ownership/stranger-cannot-release-or-renew',
      'ownership/second-release-frees-nobody',
      'idempotence/abandon-frees-once',
    ],
    backend: (backend) =>
      delegate(backend, {
        async release({ request }, call) {
          const ended = await backend.forceRelease?.(request.resource, undefined, call);
          return ended?.length === 0 ? 'not-held' : 'released';
        },
      }),
  },
  {
    name: 'renewal-ignores-the-owner',
    says: 'a renewal extends any lease of the resource',
    host: 'memory',
    expected: ['ownership/stale-holder-cannot-renew', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) =>
      delegate(backend, {
        renew: (items, call) =>
          Promise.all(
            items.map(async ({ grant, ttlMs }) => {
              const [holder] = (await backend.inspect(grant.request.resource, call)).holders;
              const acquisitionId = holder?.acquisitionId ?? grant.request.acquisitionId;
              const fencingToken = holder?.fencingToken ?? (grant.fencingToken as bigint);
              const other = { ...grant, fencingToken, request: { ...grant.request, acquisitionId } };
              const [standing] = await backend.renew([{ grant: other, ttlMs }], call);
              return standing ?? { status: 'unknown', error: new Error('no answer') };
            }),
          ),
      }),
  },
  {
    name: 'loss-names-the-successor',
    says: 'the answer to a lost renewal has the acquisition id of the successor',
    host: 'memory',
    expected: ['ownership/stale-holder-cannot-renew'],
    backend: (backend) =>
      delegate(backend, {
        async renew(items, call) {
          const standings = await backend.renew(items, call);
          const states = await Promise.all(
            items.map(({ grant }) => backend.inspect(grant.request.resource, call)),
          );
          return standings.map((standing, index) => ({ ...standing, holders: states[index]?.holders }));
        },
      }),
  },
  {
    name: 'abandon-ignores-the-owner',
    says: 'an abandon frees the resource whoever holds it',
    host: 'memory',
    expected: [
      'ownership/stranger-cannot-abandon',
      'idempotence/abandon-of-the-unknown',
      'idempotence/abandon-frees-once',
      'idempotence/late-abandon-of-the-expired',
    ],
    backend: (backend) =>
      delegate(backend, {
        async abandon(request, call) {
          await backend.abandon(request, call);
          await backend.forceRelease?.(request.resource, undefined, call);
        },
      }),
  },
  {
    name: 'second-release-frees-again',
    says: 'a second release of a lease ends the hold of its successor',
    host: 'memory',
    expected: ['ownership/second-release-is-a-no-op'],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        let released = false;
        return delegateLease(lease, {
          async release() {
            if (released) await locks.forceRelease(lease.name);
            released = true;
            await lease.release();
          },
        });
      }),
  },
  {
    name: 'release-hides-the-loss',
    says: 'the release of a lost lease resolves',
    host: 'memory',
    expected: [
      'ownership/release-after-loss-reports',
      'ownership/stale-lease-learns-nothing',
      'ownership/force-release-frees',
      'loss/force-release-is-reported',
      'loss/eviction-is-reported',
    ],
    locks: (locks) =>
      overLeases(locks, (lease) => delegateLease(lease, { release: () => ignoringLoss(lease.release()) })),
  },
  {
    name: 'released-lease-looks-valid',
    says: 'a lease reads the same after its release',
    host: 'memory',
    expected: ['ownership/released-lease-is-not-valid', 'renewal/released-lease-is-not-renewed'],
    locks: (locks) => overLeases(locks, looksValidForEver),
  },
  {
    name: 'run-hides-the-loss',
    says: 'run gives the value of the work though the lease was lost',
    host: 'memory',
    expected: ['ownership/run-reports-the-loss'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        run: <T>(work: (lease: Lease) => T | Promise<T>) =>
          lock.run(work).catch((error: unknown) => {
            if (isLockError(error, 'LOCK_LOST') && 'result' in error) return error.result as T;
            throw error;
          }),
      })),
  },
  {
    name: 'run-releases-in-a-finally',
    says: 'the error of the release hides the error of the work',
    host: 'memory',
    expected: ['ownership/work-error-wins-over-loss', 'ownership/run-reports-the-loss'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        async run(work, options) {
          const lease = await lock.acquire(options);
          try {
            return await work(lease);
          } finally {
            await lease.release();
          }
        },
      })),
  },
  {
    name: 'run-keeps-what-failed',
    says: 'run releases only when the work succeeds',
    host: 'memory',
    expected: ['ownership/run-releases-whatever-happens'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        async run(work, options) {
          const lease = await lock.acquire(options);
          const value = await work(lease);
          await lease.release();
          return value;
        },
      })),
  },
  {
    name: 'disposal-throws',
    says: 'disposal of a lost lease throws, over the error of the block',
    host: 'memory',
    expected: ['ownership/disposal-hides-nothing'],
    locks: (locks) =>
      overLeases(locks, (lease) => delegateLease(lease, { [Symbol.asyncDispose]: () => lease.release() })),
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
