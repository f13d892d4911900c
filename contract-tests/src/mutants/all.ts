import type { AllOptions, Lease, Lock, LockManager, MultiLease, MultiLock } from '@locks/core';
import { delegate, delegateLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const allMutants: readonly Mutant[] = [
  {
    name: 'a-part-stays-behind',
    says: 'members that were taken before another member failed stay held',
    expected: ['all/all-or-nothing', 'all/an-abort-leaves-nothing'],
    locks: naive({ sorted: true, keeps: true }),
  },
  {
    name: 'in-the-given-order',
    says: 'members are taken in the order in which they were named',
    expected: ['all/opposite-orders-never-block'],
    locks: naive({ sorted: false }),
  },
  {
    name: 'a-deadline-for-each',
    says: 'waitMs applies to each member instead of the set',
    expected: ['all/one-deadline'],
    locks: naive({ sorted: true }),
  },
  {
    name: 'what-is-free-will-do',
    says: 'a set leaves out members that are held',
    expected: ['all/all-or-nothing', 'all/waits-for-every-member'],
    locks: overSets((set) => ({
      async acquire(options = {}) {
        const { waitMs: _, ...rest } = options;
        const leases = await Promise.all(set.locks.map((lock) => lock.tryAcquire(rest)));
        return asSet(leases.filter((lease) => lease !== undefined));
      },
    })),
  },
  {
    name: 'one-speaks-for-all',
    says: 'the signal and the validity of a set are those of its first member',
    expected: ['all/the-loss-of-one-is-the-loss-of-all'],
    locks: overSets((set) => ({
      async acquire(options) {
        const held = await set.acquire(options);
        const first = held.leases[0] as Lease;
        return { ...asSet(held.leases), signal: first.signal, validForMs: first.validForMs };
      },
    })),
  },
  {
    name: 'leases-as-they-were-taken',
    says: 'the leases of a set are in the order in which they were taken',
    expected: ['all/a-token-for-every-member'],
    locks: overSets((set) => ({
      async acquire(options) {
        const held = await set.acquire(options);
        return asSet([...held.leases].sort((a, b) => (a.name < b.name ? -1 : 1)));
      },
    })),
  },
  {
    name: 'own-members-only',
    says: 'a set leaves out members of other managers',
    expected: ['all/over-two-managers'],
    locks: (locks) => {
      const own = new WeakSet<object>();
      return delegateLocks(locks, {
        lock(name, options) {
          const lock = locks.lock(name, options);
          own.add(lock);
          return lock;
        },
        all: (members) =>
          locks.all(
            Array.isArray(members)
              ? members.filter((lock) => typeof lock !== 'object' || own.has(lock))
              : members,
          ),
      });
    },
  },
  {
    name: 'twice-is-once',
    says: 'a lock that is named twice is taken once',
    expected: ['all/what-contradicts-itself-is-refused'],
    locks: (locks) => ({
      all: (members) => locks.all(Array.isArray(members) ? distinct(members) : members),
    }),
  },
  {
    name: 'never-in-one-step',
    says: 'members are taken one by one, although the backend has attemptMany',
    expected: ['all/in-one-step'],
    calls: (backend) => {
      const { attemptMany: _, ...rest } = delegate(backend, {});
      const features = backend.capabilities.features.filter((feature) => feature !== 'many');
      return { ...rest, capabilities: { ...backend.capabilities, features } };
    },
  },
  {
    name: 'one-step-leaves-a-part',
    says: 'a contended attemptMany keeps the members that were free',
    expected: ['all/in-one-step', 'all/one-step-does-not-overtake'],
    backend: (backend) => ({
      async attemptMany(requests, call) {
        const grants = await backend.attemptMany?.(requests, call);
        if (grants === undefined) for (const request of requests) await backend.attempt(request, false, call);
        return grants;
      },
    }),
  },
  {
    name: 'one-step-steals',
    says: 'attemptMany takes its members from their holders and ahead of waiters',
    expected: ['all/one-step-does-not-overtake'],
    backend: (backend) => ({
      attemptMany: (requests, call) =>
        Promise.all(
          requests.map(async (request) => {
            const attempt = await backend.attempt({ ...request, steal: true }, false, call);
            if (attempt.status !== 'granted') throw new Error('an attempt that steals was refused');
            return attempt.grant;
          }),
        ),
    }),
  },
  {
    name: 'one-step-knows-no-ids',
    says: 'a repeated attemptMany finds its own members contended',
    expected: ['all/one-step-repeated'],
    backend: (backend) => ({
      async attemptMany(requests, call) {
        for (const { resource } of requests) {
          if ((await backend.inspect(resource, call)).holders.length > 0) return undefined;
        }
        return backend.attemptMany?.(requests, call);
      },
    }),
  },
];

function overSets(overrides: (set: MultiLock) => Partial<MultiLock>): (locks: LockManager) => LockManager {
  return (locks) =>
    delegateLocks(locks, {
      all(members) {
        const set = locks.all(members) as unknown as MultiLock;
        const changed: MultiLock = {
          locks: set.locks,
          acquire: (options) => set.acquire(options),
          tryAcquire: (options) => set.tryAcquire(options),
          run: async (work, options) => {
            const held = await changed.acquire(options);
            try {
              return await work(held);
            } finally {
              await held.release();
            }
          },
          ...overrides(set),
        };
        return changed as never;
      },
    });
}

/** Makes sets take their members one after the other. */
function naive({ sorted, keeps = false }: { readonly sorted: boolean; readonly keeps?: boolean }) {
  return overSets((set) => {
    const members: Lock[] = sorted
      ? [...set.locks].sort((a, b) => (a.name < b.name ? -1 : 1))
      : [...set.locks];
    const takeAll = async (
      take: (lock: Lock) => Promise<Lease | undefined>,
    ): Promise<MultiLease | undefined> => {
      const taken: Lease[] = [];
      const releaseAll = async (): Promise<void> => {
        if (!keeps) await Promise.all(taken.map((lease) => lease.release()));
      };
      for (const lock of members) {
        const lease = await take(lock).catch(async (error: unknown) => {
          await releaseAll();
          throw error;
        });
        if (lease === undefined) {
          await releaseAll();
          return undefined;
        }
        taken.push(lease);
      }
      return asSet(set.locks.map((lock) => taken.find(({ name }) => name === lock.name) as Lease));
    };
    return {
      acquire: async (options?: AllOptions) => (await takeAll((lock) => lock.acquire(options))) as MultiLease,
      tryAcquire: (options?: AllOptions) => takeAll((lock) => lock.tryAcquire(options)),
    };
  });
}

function asSet(leases: readonly Lease[]): MultiLease {
  return {
    leases,
    get validForMs() {
      return Math.min(...leases.map((lease) => lease.validForMs));
    },
    get signal() {
      return AbortSignal.any(leases.map((lease) => lease.signal));
    },
    assertValid: (minRemainingMs) => {
      for (const lease of leases) lease.assertValid(minRemainingMs);
    },
    renew: async (ttlMs) => void (await Promise.all(leases.map((lease) => lease.renew(ttlMs)))),
    release: async () => void (await Promise.all(leases.map((lease) => lease.release()))),
    [Symbol.asyncDispose]: async () => void (await Promise.all(leases.map((lease) => lease.release()))),
  };
}

function distinct<L extends { readonly name: string }>(locks: readonly L[]): L[] {
  return [...new Map(locks.map((lock) => [lock?.name, lock])).values()];
}
