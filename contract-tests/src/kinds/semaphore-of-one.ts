import type { AcquireRequest, Grant, LockBackend, LockMode, ResourceState } from '@locks/core';
import { delegate } from '@locks/core/conformance';

const EXCLUSIVE: LockMode = { kind: 'exclusive' };
const ONE: LockMode = { kind: 'permit', limit: 1, weight: 1 };

/** A backend whose exclusive locks are semaphores of one: the suite's exclusive cases then hold permits to their word. */
export function semaphoreOfOne(backend: LockBackend): LockBackend {
  const disguise = (request: AcquireRequest): AcquireRequest => ({ ...request, mode: ONE });
  const disguised = (grant: Grant): Grant => ({ ...grant, request: disguise(grant.request) });
  const { attemptMany, awaitTurn, list, forceRelease } = backend;
  const {
    downgrade: _,
    resize: __,
    ...rest
  } = delegate(backend, {
    async attempt(request, enqueue, call) {
      const attempt = await backend.attempt(disguise(request), enqueue, call);
      if (attempt.status !== 'granted') return attempt;
      return { status: 'granted', grant: { ...attempt.grant, request } };
    },
    abandon: (request, call) => backend.abandon(disguise(request), call),
    release: (grant, call) => backend.release(disguised(grant), call),
    renew: (items, call) =>
      backend.renew(
        items.map(({ grant, ttlMs }) => ({ grant: disguised(grant), ttlMs })),
        call,
      ),
    inspect: async (resource, call) => undisguised(await backend.inspect(resource, call)),
    ...(list && {
      async *list(prefix, call) {
        for await (const state of list.call(backend, prefix, call)) yield undisguised(state);
      },
    }),
    ...(forceRelease && {
      forceRelease: async (resource, id, call) =>
        (await forceRelease.call(backend, resource, id, call)).map((holder) => ({
          ...holder,
          mode: EXCLUSIVE,
        })),
    }),
    ...(awaitTurn && {
      async awaitTurn(request, call) {
        const grant = await awaitTurn.call(backend, disguise(request), call);
        return grant && { ...grant, request };
      },
    }),
    ...(attemptMany && {
      async attemptMany(requests, call) {
        const grants = await attemptMany.call(backend, requests.map(disguise), call);
        return grants?.map((grant, index) => ({ ...grant, request: requests[index] as AcquireRequest }));
      },
    }),
  });
  return { ...rest, capabilities: { ...backend.capabilities, modes: ['exclusive'] } };
}

function undisguised({ resource, holders, waiters }: ResourceState): ResourceState {
  return {
    resource,
    holders: holders.map((holder) => ({ ...holder, mode: EXCLUSIVE })),
    waiters: waiters.map((waiter) => ({ ...waiter, mode: EXCLUSIVE })),
  };
}
