import type { LockMode } from '@locks/core';
import type { LockBackend, AcquireRequest, Call } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import { onModes } from './modes.ts';
import type { Mutant } from './mutant.ts';
import { onRequests } from './on-grants.ts';

export const permitsMutants: readonly Mutant[] = [
  {
    name: 'one-permit-more',
    says: 'there is one permit more than the limit says',
    expected: [
      'permits/no-more-than-there-are',
      'permits/never-too-many-inside',
      'permits/not-issued-twice-after-an-end',
    ],
    backend: (backend) => onModes(backend, (mode) => permitted(mode, ({ limit }) => ({ limit: limit + 1 }))),
  },
  {
    name: 'every-weight-is-one',
    says: 'a request takes one permit, of any weight',
    expected: [
      'permits/weights-add-up',
      'permits/never-too-many-inside',
      'permits/a-heavy-one-is-not-overtaken',
    ],
    backend: (backend) => onModes(backend, (mode) => permitted(mode, () => ({ weight: 1 }))),
  },
  {
    name: 'every-limit-is-welcome',
    says: 'a request with another limit is served with the present limit',
    expected: ['permits/another-limit-is-a-conflict', 'permits/more-permits-let-waiters-in'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status !== 'conflict' || attempt.with.kind !== 'permit') return attempt;
        const mode = permitted(request.mode, () => ({ limit: (attempt.with as { limit: number }).limit }));
        return backend.attempt({ ...request, mode }, enqueue, call);
      },
    }),
  },
  {
    name: 'semaphores-are-apart',
    says: 'a semaphore and a lock of one name are independent',
    expected: ['permits/beside-a-lock-is-a-conflict'],
    backend: (backend) =>
      onRequests(backend, (request) =>
        request.mode.kind === 'permit' ? { ...request, resource: `${request.resource} permits` } : request,
      ),
  },
  {
    name: 'permits-end-by-the-clients-clock',
    says: 'a client removes the holds that have ended by its own clock',
    expected: ['permits/clients-clocks-do-not-count'],
    backend: endsByClientsClocks,
  },
];

function permitted(
  mode: LockMode,
  change: (mode: LockMode & { kind: 'permit' }) => { limit?: number; weight?: number },
): LockMode {
  return mode.kind === 'permit' ? { ...mode, ...change(mode) } : mode;
}

const ends = new Map<string, { readonly request: AcquireRequest; readonly end: number }[]>();

function endsByClientsClocks(backend: LockBackend): LockBackend {
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      await endOver(backend, request.resource, call);
      const attempt = await backend.attempt(request, enqueue, call);
      if (attempt.status === 'granted') {
        const known = ends.get(request.resource) ?? [];
        ends.set(request.resource, [...known, { request, end: call.now() + request.ttlMs }]);
      }
      return attempt;
    },
  });
}

async function endOver(backend: LockBackend, resource: string, call: Call): Promise<void> {
  for (const { request, end } of ends.get(resource) ?? []) {
    if (end <= call.now()) await backend.forceRelease?.(resource, request.acquisitionId, call);
  }
}
