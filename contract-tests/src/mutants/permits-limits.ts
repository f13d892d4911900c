import type { Attempt, Grant, LockBackend, LockMode } from '@locks/core';
import { delegate } from './delegate.ts';
import { storeWith } from './modes.ts';
import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

export const permitsLimitsMutants: readonly Mutant[] = [
  {
    name: 'permits-share-a-token',
    says: 'every permit has the same token',
    host: 'memory',
    expected: ['permits/tokens-rise', 'permits/all-that-fit-enter'],
    backend: (backend) =>
      onGrants(backend, (grant, { mode }) =>
        mode.kind === 'permit' ? { ...grant, fencingToken: 1n } : grant,
      ),
  },
  {
    name: 'one-token-a-step',
    says: 'waiters that are granted together have one token',
    host: 'memory',
    expected: ['shared/neighbours-enter-together', 'permits/all-that-fit-enter'],
    backend: (backend) =>
      delegate(backend, {
        async awaitTurn(request, call) {
          const grant = await backend.awaitTurn?.(request, call);
          return grant && request.mode.kind !== 'exclusive' ? withTokenOfStep(grant) : grant;
        },
      }),
  },
  {
    name: 'one-token-a-client-and-step',
    says: 'waiters of one client that are granted together have one token',
    host: 'memory',
    expected: [
      'shared/neighbours-of-one-client-have-tokens-of-their-own',
      'permits/neighbours-of-one-client-have-tokens-of-their-own',
    ],
    backend(backend) {
      const withToken = tokenOfStep();
      return delegate(backend, {
        async awaitTurn(request, call) {
          const grant = await backend.awaitTurn?.(request, call);
          return grant && request.mode.kind !== 'exclusive' ? withToken(grant) : grant;
        },
      });
    },
  },
  {
    name: 'neighbours-in-reverse',
    says: 'readers and permits that are granted together are granted the last first',
    host: 'memory',
    expected: [
      'shared/neighbours-of-one-client-have-tokens-of-their-own',
      'permits/neighbours-of-one-client-have-tokens-of-their-own',
    ],
    backend: storeWith({
      next: (rules, next) => {
        const first = next();
        if (first === undefined || first.mode.kind === 'exclusive') return first;
        return rules.waiters.findLast(({ mode }) => mode.kind === first.mode.kind && rules.fits(mode));
      },
    }),
  },
  {
    name: 'a-limit-outlives-its-permits',
    says: 'only a release ends the limit of a permit',
    host: 'memory',
    expected: ['permits/a-dead-limit-binds-nobody'],
    backend: (backend) =>
      remembersModes(
        backend,
        (old, mode) => old.kind === 'permit' && mode.kind === 'permit' && old.limit !== mode.limit,
      ),
  },
  {
    name: 'a-mode-outlives-its-holds',
    says: 'a name is a semaphore or a lock until the last of its holds was released',
    host: 'memory',
    expected: ['permits/a-dead-limit-binds-nobody'],
    backend: (backend) =>
      remembersModes(backend, (old, mode) => (old.kind === 'permit') !== (mode.kind === 'permit')),
  },
  {
    name: 'a-limit-is-never-lowered',
    says: 'a lower limit is answered as set, and is not',
    host: 'memory',
    expected: ['permits/more-than-there-are-waits', 'permits/fewer-permits-end-no-hold'],
    backend: (backend) =>
      delegate(backend, {
        async resize(resource, limit, call) {
          const { holders, waiters } = await backend.inspect(resource, call);
          const limits = [...holders, ...waiters].map(({ mode }) =>
            mode.kind === 'permit' ? mode.limit : 0,
          );
          return (await backend.resize?.(resource, Math.max(limit, ...limits), call)) ?? { status: 'set' };
        },
      }),
  },
  {
    name: 'readers-wait-for-permits',
    says: 'a reader that comes beside permits waits for them',
    host: 'memory',
    expected: ['permits/beside-a-lock-is-a-conflict'],
    backend: waitsWhere((mode) => mode.kind === 'shared'),
  },
  {
    name: 'permits-wait-for-readers',
    says: 'a request for a permit beside readers waits for them',
    host: 'memory',
    expected: ['permits/beside-a-lock-is-a-conflict'],
    backend: waitsWhere((mode, beside) => mode.kind === 'permit' && beside.kind === 'shared'),
  },
];

/** Gives all grants of one turn of the event loop the token of the first. */
function tokenOfStep(): (grant: Grant) => Grant {
  let token: bigint | undefined;
  return (grant) => {
    if (token === undefined) {
      token = grant.fencingToken;
      setImmediate(() => (token = undefined));
    }
    return token === undefined ? grant : { ...grant, fencingToken: token };
  };
}

/** One for all clients of the process. */
const withTokenOfStep = tokenOfStep();

/** The modes of the unreleased grants of each resource, by id. */
const remembered = new Map<string, Map<string, LockMode>>();

function remembersModes(
  backend: LockBackend,
  contradicts: (old: LockMode, mode: LockMode) => boolean,
): LockBackend {
  const forget = (resource: string, id: string | undefined): void => {
    if (id === undefined) remembered.delete(resource);
    else remembered.get(resource)?.delete(id);
  };
  return delegate(backend, {
    async attempt(request, enqueue, call): Promise<Attempt> {
      const { resource, acquisitionId, mode } = request;
      const modes = remembered.get(resource) ?? new Map<string, LockMode>();
      const old = [...modes.values()].find((one) => contradicts(one, mode));
      if (old !== undefined) return { status: 'conflict', with: old };
      const attempt = await backend.attempt(request, enqueue, call);
      if (attempt.status === 'granted') remembered.set(resource, modes.set(acquisitionId, mode));
      return attempt;
    },
    release(grant, call) {
      forget(grant.request.resource, grant.request.acquisitionId);
      return backend.release(grant, call);
    },
    abandon(request, call) {
      forget(request.resource, request.acquisitionId);
      return backend.abandon(request, call);
    },
    async resize(resource, limit, call) {
      const modes = remembered.get(resource) ?? [];
      for (const [id, mode] of modes)
        if (mode.kind === 'permit') remembered.get(resource)?.set(id, { ...mode, limit });
      return (await backend.resize?.(resource, limit, call)) ?? { status: 'set' };
    },
    async forceRelease(resource, id, call) {
      forget(resource, id);
      return (await backend.forceRelease?.(resource, id, call)) ?? [];
    },
  });
}

function waitsWhere(
  waits: (mode: LockMode, beside: LockMode) => boolean,
): (backend: LockBackend) => LockBackend {
  return (backend) =>
    delegate(backend, {
      async attempt(request, enqueue, call): Promise<Attempt> {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status !== 'conflict' || !waits(request.mode, attempt.with)) return attempt;
        return { status: 'contended', retryAfterMs: 20 };
      },
    });
}
