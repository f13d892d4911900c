import type { LockMode } from '@locks/core';
import type { LockBackend, Attempt, Grant } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const permitsLimitsMutants: readonly Mutant[] = [
  {
    name: 'one-token-a-step',
    says: 'waiters that are granted together have one token',
    expected: [
      'shared/neighbours-enter-together',
      'permits/all-that-fit-enter',
      'shared/neighbours-of-one-client-have-tokens-of-their-own',
      'permits/neighbours-of-one-client-have-tokens-of-their-own',
    ],
    backend: (backend) => ({
      async awaitTurn(request, call) {
        const grant = await backend.awaitTurn?.(request, call);
        return grant && request.mode.kind !== 'exclusive' ? withTokenOfStep(grant) : grant;
      },
    }),
  },
  {
    name: 'a-limit-outlives-its-permits',
    says: 'only a release ends the limit of a permit',
    expected: ['permits/a-dead-limit-binds-nobody'],
    backend: (backend) =>
      remembersModes(
        backend,
        (old, mode) => old.kind === 'permit' && mode.kind === 'permit' && old.limit !== mode.limit,
      ),
  },
  {
    name: 'a-limit-is-never-lowered',
    says: 'a lower limit is answered as set, and is not',
    expected: ['permits/more-than-there-are-waits', 'permits/fewer-permits-end-no-hold'],
    backend: (backend) => ({
      async resize(resource, limit, call) {
        const { holders, waiters } = await backend.inspect(resource, call);
        const limits = [...holders, ...waiters].map(({ mode }) => (mode.kind === 'permit' ? mode.limit : 0));
        return (await backend.resize?.(resource, Math.max(limit, ...limits), call)) ?? { status: 'set' };
      },
    }),
  },
];

/** The token of the first grant of this iteration of the event loop. */
let tokenOfStep: bigint | undefined;

/** Gives all grants of one iteration of the event loop, to all clients of the process, the token of the first. */
function withTokenOfStep(grant: Grant): Grant {
  if (tokenOfStep === undefined) {
    tokenOfStep = grant.fencingToken;
    setImmediate(() => (tokenOfStep = undefined));
  }
  return tokenOfStep === undefined ? grant : { ...grant, fencingToken: tokenOfStep };
}

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
