import type { LockBackend, AcquireRequest, Call, Grant, RenewItem } from '@locks/core/backend';
import { delegate } from './delegate.ts';

type ChangeGrant = (grant: Grant, request: AcquireRequest, call: Call) => Grant;

/** Changes every grant, of an attempt or of a hand-off. */
export function onGrants(backend: LockBackend, change: ChangeGrant): LockBackend {
  const { awaitTurn } = backend;
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      return attempt.status === 'granted'
        ? { status: 'granted', grant: change(attempt.grant, request, call) }
        : attempt;
    },
    ...(awaitTurn && {
      async awaitTurn(request, call) {
        const grant = await awaitTurn.call(backend, request, call);
        return grant && change(grant, request, call);
      },
    }),
  });
}

/** Changes the renewals that the store gets. */
export function onRenewals(
  backend: LockBackend,
  ttlFor: (item: RenewItem, items: readonly RenewItem[]) => number,
): LockBackend {
  return delegate(backend, {
    renew: (items, call) =>
      backend.renew(
        items.map((item) => ({ grant: item.grant, ttlMs: ttlFor(item, items) })),
        call,
      ),
  });
}

/** Changes the requests that the store gets, without core's knowledge. */
export function onRequests(
  backend: LockBackend,
  change: (request: AcquireRequest) => AcquireRequest,
): LockBackend {
  const { awaitTurn } = backend;
  const disguised = delegate(backend, {
    attempt: (request, enqueue, call) => backend.attempt(change(request), enqueue, call),
    abandon: (request, call) => backend.abandon(change(request), call),
    release: (grant, call) => backend.release({ ...grant, request: change(grant.request) }, call),
    renew: (items, call) =>
      backend.renew(
        items.map(({ grant, ttlMs }) => ({ grant: { ...grant, request: change(grant.request) }, ttlMs })),
        call,
      ),
    ...(awaitTurn && { awaitTurn: (request, call) => awaitTurn.call(backend, change(request), call) }),
  });
  return onGrants(disguised, (grant, request) => ({ ...grant, request }));
}

/** Stores resources under other names. */
export function onNames(backend: LockBackend, rename: (name: string) => string): LockBackend {
  const renamed = onRequests(backend, (request) => ({ ...request, resource: rename(request.resource) }));
  const { forceRelease } = backend;
  return delegate(renamed, {
    inspect: async (resource, call) => ({
      ...(await backend.inspect(rename(resource), call)),
      name: resource,
    }),
    ...(forceRelease && {
      forceRelease: (resource, id, call) => forceRelease.call(backend, rename(resource), id, call),
    }),
  });
}
