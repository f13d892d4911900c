import type { LockManager, LockMode, Semaphore } from '@locks/core';
import type { LockBackend, AcquireRequest, Call } from '@locks/core/backend';
import { delegate, delegateLocks } from './delegate.ts';
import { onModes, storeWith } from './modes.ts';
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
    name: 'weight-is-not-returned',
    says: 'a release returns one permit, of any weight',
    expected: ['permits/weights-add-up'],
    backend: (backend) => ({
      async release(grant, call) {
        const released = await backend.release(grant, call);
        const { request } = grant;
        if (request.mode.kind !== 'permit' || request.mode.weight === 1) return released;
        const mode = { ...request.mode, weight: request.mode.weight - 1 };
        await backend.attempt(
          { ...request, mode, acquisitionId: `${request.acquisitionId}-kept` },
          false,
          call,
        );
        return released;
      },
    }),
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
  {
    name: 'light-ones-overtake',
    says: 'a newcomer that fits is served ahead of waiters',
    expected: ['permits/a-heavy-one-is-not-overtaken'],
    backend: storeWith({ admits: (rules, mode, admits) => admits(mode) || rules.fits(mode) }),
  },
  {
    name: 'resize-is-forgotten',
    says: 'resize is answered and not done',
    expected: ['permits/more-permits-let-waiters-in', 'permits/fewer-permits-end-no-hold'],
    backend: () => ({ resize: async () => ({ status: 'set' }) }),
  },
  {
    name: 'resize-ends-holds',
    says: 'a lower limit ends the holds above it',
    expected: ['permits/fewer-permits-end-no-hold'],
    backend: (backend) => ({
      async resize(resource, limit, call) {
        const answer = (await backend.resize?.(resource, limit, call)) ?? { status: 'set' };
        const { holders } = await backend.inspect(resource, call);
        for (const { acquisitionId } of holders.slice(limit)) {
          await backend.forceRelease?.(resource, acquisitionId, call);
        }
        return answer;
      },
    }),
  },
  {
    name: 're-entry-takes-permits',
    says: 'an acquire within its own lease takes more permits',
    expected: ['permits/re-entered-as-they-are'],
    locks: (locks) =>
      overSemaphores(locks, (slots) => ({
        acquire(given = {}) {
          const { within: _, ...options } = given;
          return slots.acquire({ ...options, weight: 1 });
        },
      })),
  },
  {
    name: 'odd-numbers-are-rounded',
    says: 'a limit or a weight that is no whole number above 0 is corrected to one',
    expected: ['permits/bad-numbers-are-refused'],
    locks: (locks) => ({
      semaphore: (name, permits, options) => locks.semaphore(name, rounded(permits), options),
    }),
  },
];

function permitted(
  mode: LockMode,
  change: (mode: LockMode & { kind: 'permit' }) => { limit?: number; weight?: number },
): LockMode {
  return mode.kind === 'permit' ? { ...mode, ...change(mode) } : mode;
}

function overSemaphores(
  locks: LockManager,
  overrides: (slots: Semaphore) => Partial<Semaphore>,
): LockManager {
  return delegateLocks(locks, {
    semaphore(name, permits, options) {
      const slots = locks.semaphore(name, permits, options);
      return {
        name,
        get permits() {
          return slots.permits;
        },
        mode: slots.mode,
        acquire: (given) => slots.acquire(given),
        tryAcquire: (given) => slots.tryAcquire(given),
        run: (work, given) => slots.run(work, given),
        inspect: () => slots.inspect(),
        resize: (limit) => slots.resize(limit),
        ...overrides(slots),
      };
    },
  });
}

function rounded(value: number): number {
  return Number.isFinite(value) ? Math.max(1, Math.round(value)) : 1;
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
