import { isMainThread } from 'node:worker_threads';
import type { LockBackend, RenewItem, RenewalStatus } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

const openCall = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

const unsent: Partial<LockBackend> = {
  renew: async (items) => items.map((): RenewalStatus => ({ status: 'held' })),
};

/** Renews what it was asked to renew once again and again, whatever core says. */
function renewedForEver(backend: LockBackend): LockBackend['renew'] {
  return (items, call) => {
    for (const item of items) setInterval(() => void renewAgain(backend, item), item.ttlMs / 4).unref();
    return backend.renew(items, call);
  };
}

async function renewAgain(backend: LockBackend, item: RenewItem): Promise<void> {
  await backend.renew([item], openCall).catch(() => undefined);
}

/** What is wrong with leases that a thread renews: their host must work in several processes. */
export const blockedMutants: readonly Mutant[] = [
  {
    name: 'thread-renews-without-the-store',
    says: 'a renewal thread says that a lease is held, and sends nothing',
    host: 'sqlite',
    expected: ['blocked/lease-is-kept'],
    backend: () => (isMainThread ? {} : unsent),
  },
  {
    name: 'thread-renews-beyond-the-bound',
    says: 'a renewal thread renews for ever what it has renewed once',
    host: 'sqlite',
    expected: ['blocked/ends-at-its-bound'],
    backend: (backend) => (isMainThread ? {} : { renew: renewedForEver(backend) }),
  },
  {
    name: 'blocked-holder-is-not-told',
    says: 'the signal of a lease does not abort',
    host: 'sqlite',
    expected: ['blocked/ends-at-its-bound'],
    lease: () => ({ signal: new AbortController().signal }),
  },
  {
    name: 'stale-belief-is-read-first',
    says: 'a lease is read as it was before the event loop stood still, until a timer has looked again',
    host: 'sqlite',
    expected: ['blocked/an-end-is-read-first', 'blocked/ends-at-its-bound'],
    lease(lease) {
      let isBelieved = true;
      const timer = setInterval(() => {
        isBelieved = lease.validForMs > 0;
        if (!isBelieved) clearInterval(timer);
      }, 10).unref();
      return {
        assertValid() {
          if (!isBelieved) lease.assertValid();
        },
      };
    },
  },
  {
    name: 'thread-outlives-a-release',
    says: 'a client sends its release in a later turn of the event loop, and its renewal thread sends none',
    host: 'sqlite',
    expected: ['blocked/release-is-sent'],
    backend: (backend) => ({
      async release(grant, call) {
        if (!isMainThread) return 'released';
        await pause(0);
        return backend.release(grant, call);
      },
    }),
  },
  {
    name: 'loop-trusts-its-thread',
    says: 'the event loop says that a lease is held, and leaves its renewal to a thread that has ended',
    host: 'sqlite',
    expected: ['blocked/loop-takes-over'],
    backend: () => (isMainThread ? unsent : {}),
  },
];
