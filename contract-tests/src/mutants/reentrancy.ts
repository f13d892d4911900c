import { AsyncLocalStorage } from 'node:async_hooks';
import { type Lease, type LockManager } from '@locks/core';
import type { Holder, ResourceState } from '@locks/core/backend';
import { overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';

/** The beginning of the names of locks that tell of waits. */
const WAITS = '@locks/waits/';

/** A state without some of its holders, where who reads it follows waits: nobody else leaves the waiters out. */
async function seenByFollowers(
  reading: Promise<ResourceState>,
  options: { readonly waiters?: boolean } | undefined,
  isSeen: (holder: Holder, at: number) => boolean,
): Promise<ResourceState> {
  const state = await reading;
  if (options?.waiters !== false || state.name.startsWith(WAITS)) return state;
  return { ...state, holders: state.holders.filter(isSeen) };
}

/** Re-enters wherever `held` finds a lease of the name, without count or turn. */
function letsIn(
  locks: LockManager,
  held: Pick<AsyncLocalStorage<ReadonlyMap<string, Lease>>, 'run' | 'getStore'>,
): LockManager {
  return overLocks(locks, (lock, name) => ({
    run: (work, options) => {
      const lease = held.getStore()?.get(name);
      if (lease !== undefined) return Promise.resolve(work(lease));
      return lock.run(
        (own) => held.run(new Map([...(held.getStore() ?? []), [name, own]]), () => work(own)),
        options,
      );
    },
  }));
}

const contexts = new AsyncLocalStorage<ReadonlyMap<string, Lease>>();

/** The leases whose work runs at the moment, in any context. */
class Everywhere {
  readonly #running: ReadonlyMap<string, Lease>[] = [];

  getStore(): ReadonlyMap<string, Lease> | undefined {
    return this.#running.at(-1);
  }

  run<R>(store: ReadonlyMap<string, Lease>, work: () => R): R {
    this.#running.push(store);
    const left = (): void => void this.#running.splice(this.#running.indexOf(store), 1);
    const result = work();
    Promise.resolve(result).then(left, left);
    return result;
  }
}

export const reentrancyMutants: readonly Mutant[] = [
  {
    name: 'naive-reentrancy',
    says: 'any code in the asynchronous context of a holder re-enters',
    expected: [
      'reentrancy/not-unless-asked',
      'reentrancy/run-inside-run',
      'reentrancy/three-levels',
      'reentrancy/branches-take-turns',
      'reentrancy/detached-child',
      'reentrancy/queued-child-becomes-stranger',
      'reentrancy/queued-task-of-a-stranger',
      'reentrancy/detached-work-is-a-stranger',
      'reentrancy/other-managers-are-strangers',
    ],
    locks: (locks) => letsIn(locks, contexts),
  },
  {
    name: 'process-wide-reentrancy',
    says: 'any code of a process that holds re-enters',
    expected: ['reentrancy/bound-task-of-a-stranger', 'reentrancy/detached-work-is-a-stranger'],
    locks: (locks) => letsIn(locks, new Everywhere()),
  },
  {
    name: 'unseen-run',
    says: 'nothing shows that code runs inside a run',
    expected: ['reentrancy/circle-is-refused'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        run: (work, options) => lock.run((own) => locks.detached(() => work(own)), options),
      })),
  },
  {
    name: 'long-waits-untold',
    says: 'the store does not show what tells of long waits',
    expected: ['reentrancy/circle-over-clients'],
    backend: (backend) => ({
      inspect: async (name, call, options) =>
        name.startsWith(WAITS) ? { name, holders: [], waiters: [] } : backend.inspect(name, call, options),
    }),
  },
  {
    name: 'told-after-the-wait',
    says: 'what tells of a wait stays when the wait has ended',
    expected: ['reentrancy/circle-over-clients'],
    calls: (backend) => ({
      abandon: async (request, call) => {
        if (!request.resource.startsWith(WAITS)) await backend.abandon(request, call);
      },
    }),
  },
  {
    name: 'circles-of-two-alone',
    says: 'a client follows no more than one wait of others',
    expected: ['reentrancy/circle-of-three-clients'],
    backend: (backend) => {
      // The first one is a wait of its own, which it looks up.
      const followed = new Set<string>();
      return {
        inspect: async (name, call, options) => {
          if (name.startsWith(WAITS) && followed.size < 2) followed.add(name);
          return name.startsWith(WAITS) && !followed.has(name)
            ? { name, holders: [], waiters: [] }
            : backend.inspect(name, call, options);
        },
      };
    },
  },
  {
    name: 'readers-in-nobodys-way',
    says: 'who follows waits does not see readers',
    expected: ['reentrancy/circle-of-readers'],
    backend: (backend) => ({
      inspect: (name, call, options) =>
        seenByFollowers(backend.inspect(name, call, options), options, ({ mode }) => mode.kind !== 'shared'),
    }),
  },
  {
    name: 'one-permit-seen',
    says: 'who follows waits sees one holder of permits',
    expected: ['reentrancy/circle-through-permits'],
    backend: (backend) => ({
      inspect: (name, call, options) =>
        seenByFollowers(
          backend.inspect(name, call, options),
          options,
          ({ mode }, at) => mode.kind !== 'permit' || at === 0,
        ),
    }),
  },
  {
    name: 'sets-unseen',
    says: 'nothing shows that code runs inside the run of a set',
    expected: ['reentrancy/circle-through-sets'],
    locks: (locks) => ({
      all: (members) => {
        const set = locks.all(members);
        return Object.assign(Object.create(set) as typeof set, {
          run: ((work, options) =>
            set.run((own) => locks.detached(() => work(own)), options)) as typeof set.run,
        });
      },
    }),
  },
  {
    name: 'permit-is-whole',
    says: 'whoever holds a permit is taken to hold all of them',
    expected: ['reentrancy/long-wait-is-no-circle'],
    backend: (backend) => ({
      inspect: async (name, call, options) => {
        const state = await backend.inspect(name, call, options);
        const holders = state.holders.map((holder) =>
          holder.mode.kind === 'permit' ? { ...holder, mode: { kind: 'exclusive' } as const } : holder,
        );
        return { ...state, holders };
      },
    }),
  },
];
