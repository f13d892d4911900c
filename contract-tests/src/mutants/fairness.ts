import type { LockBackend, AcquireRequest, Attempt, Call, Grant } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import { type Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

/** The waiters of a resource, the last one first, over all backends of the process. */
const stacks = new Map<string, string[]>();

/** A backend without a queue in the store, which serves the last waiter first. */
function lastComeFirstServed(backend: LockBackend): LockBackend {
  const leave = ({ resource, acquisitionId }: AcquireRequest): void => {
    const stack = stacks.get(resource)?.filter((id) => id !== acquisitionId) ?? [];
    if (stack.length === 0) stacks.delete(resource);
    else stacks.set(resource, stack);
  };
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const { resource, acquisitionId } = request;
      const attempt = await backend.attempt(request, false, call);
      if (attempt.status === 'granted') leave(request);
      else if (enqueue && !stacks.get(resource)?.includes(acquisitionId)) {
        stacks.set(resource, [acquisitionId, ...(stacks.get(resource) ?? [])]);
      }
      return attempt;
    },
    async awaitTurn({ resource, acquisitionId }, { signal }) {
      do await pause(1);
      while (stacks.get(resource)?.[0] !== acquisitionId && !signal?.aborted);
      return undefined;
    },
    abandon(request, call) {
      leave(request);
      return backend.abandon(request, call);
    },
  });
}

/** The first waiter of each process goes to the end of the queue when its turn comes. */
function stepsBack(backend: LockBackend): LockBackend {
  const waited = new Set<string>();
  let stepped = false;
  const judge = async (request: AcquireRequest, grant: Grant, call: Call): Promise<Grant | undefined> => {
    if (stepped || !waited.has(request.acquisitionId)) return grant;
    stepped = true;
    await backend.release(grant, call);
    const again = await backend.attempt(request, true, call);
    return again.status === 'granted' ? again.grant : undefined;
  };
  return delegate(backend, {
    async attempt(request, enqueue, call): Promise<Attempt> {
      const attempt = await backend.attempt(request, enqueue, call);
      if (attempt.status !== 'granted') {
        if (enqueue) waited.add(request.acquisitionId);
        return attempt;
      }
      const grant = await judge(request, attempt.grant, call);
      return grant === undefined ? { status: 'contended' } : { status: 'granted', grant };
    },
    async awaitTurn(request, call) {
      const grant = await backend.awaitTurn?.(request, call);
      return grant && (await judge(request, grant, call));
    },
  });
}

/** A waiter watches only its predecessor, and waits for a dead one. */
function waitsForTheOneBefore(backend: LockBackend): LockBackend {
  const before = new Map<string, { readonly id: string | undefined; held: boolean }>();
  return delegate(backend, {
    async awaitTurn({ resource, acquisitionId }, call) {
      for (;;) {
        const { holders, waiters } = await backend.inspect(resource, call);
        const holder = holders[0]?.acquisitionId;
        let watched = before.get(acquisitionId);
        if (watched === undefined) {
          const position = waiters.findIndex((waiter) => waiter.acquisitionId === acquisitionId);
          watched = { id: waiters[position - 1]?.acquisitionId ?? holder, held: false };
          before.set(acquisitionId, watched);
        }
        if (watched.id === undefined || holder === acquisitionId || (watched.held && holder !== watched.id))
          return undefined;
        watched.held ||= holder === watched.id;
        if (call.signal?.aborted) return undefined;
        await pause(5);
      }
    },
  });
}

/** A try shortly before the end of a hold waits for that end, and takes the resource ahead of the waiters. */
function triesUntilTheEnd(backend: LockBackend): LockBackend {
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      if (enqueue || attempt.status !== 'contended') return attempt;
      const { holders, waiters } = await backend.inspect(request.resource, call);
      const left = holders[0]?.expiresInMs ?? Number.POSITIVE_INFINITY;
      if (waiters.length === 0 || left > 20) return attempt;
      await pause(left);
      return backend.attempt({ ...request, steal: true }, false, call);
    },
  });
}

export const fairnessMutants: readonly Mutant[] = [
  {
    name: 'last-come-first-served',
    says: 'waiters are a stack, and a newcomer takes a free lock',
    expected: [
      'fairness/first-come-first-served',
      'fairness/newcomers-do-not-overtake',
      'fairness/turns-are-shared',
      'fairness/as-the-model-says',
      'waiting/waiters-are-shown-in-order',
      'permits/first-come-first-served',
    ],
    backend: lastComeFirstServed,
  },
  {
    name: 'steps-back',
    says: 'the first waiter of a process goes to the end of the queue when its turn comes',
    host: 'sqlite',
    expected: ['fairness/order-over-three-processes'],
    backend: stepsBack,
  },
  {
    name: 'waits-for-the-dead',
    says: 'a waiter waits until its predecessor has had its turn, dead or alive',
    host: 'sqlite',
    expected: [
      'waiting/killed-waiter-is-passed-over',
      'waiting/frozen-waiter-is-passed-over',
      'waiting/dead-after-the-hand-off',
    ],
    backend: waitsForTheOneBefore,
  },
  {
    name: 'tries-until-the-end',
    says: 'a try shortly before the end of a hold waits for it, and is served before the queue',
    expected: ['fairness/a-try-does-not-overtake-at-an-end'],
    backend: triesUntilTheEnd,
  },
  {
    name: 'attempts-overtake',
    says: 'attempts of one iteration of the event loop reach the store in another order',
    expected: ['fairness/order-of-calls'],
    backend: attemptsOvertake,
  },
];

/** Every second attempt takes another, slower way to the store. */
function attemptsOvertake(backend: LockBackend): LockBackend {
  let attempts = 0;
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      attempts += 1;
      if (attempts % 2 === 0) await pause(2);
      return await backend.attempt(request, enqueue, call);
    },
  });
}
