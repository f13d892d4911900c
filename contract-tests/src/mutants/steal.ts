import type { LockBackend } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

export const stealMutants: readonly Mutant[] = [
  {
    name: 'a-steal-waits',
    says: 'steal has no effect',
    expected: ['steal/takes-it-at-once', 'steal/the-queue-stays-behind', 'steal/ends-every-share'],
    backend: (backend) => ({
      attempt(request, enqueue, call) {
        const { steal: _, ...plain } = request;
        return backend.attempt(plain, enqueue, call);
      },
    }),
  },
  {
    name: 'former-holders-learn-nothing',
    says: 'a renewal of a former holder is answered as if it still held',
    expected: ['steal/takes-it-at-once', 'steal/repeated-it-is-one-steal'],
    backend: (backend) => ({
      renew: async (items, call) =>
        (await backend.renew(items, call)).map((renewalStatus) =>
          renewalStatus.status === 'lost' && renewalStatus.reason === 'taken-over'
            ? { status: 'held' }
            : renewalStatus,
        ),
    }),
  },
  {
    name: 'a-steal-sets-the-limit',
    says: 'a steal of a permit gives those who wait its own limit',
    expected: ['steal/contradicts-no-waiter'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { mode, resource, steal } = request;
        if (steal === true && mode.kind === 'permit') await backend.resize?.(resource, mode.limit, call);
        return backend.attempt(request, enqueue, call);
      },
    }),
  },
  {
    name: 'a-stolen-turn-is-lost',
    says: 'a waiter whose hand-off is stolen before it hears of it goes to the end of the queue',
    expected: ['steal/stolen-before-it-was-reported'],
    backend: (backend) => ({
      async awaitTurn(request, call) {
        const grant = await backend.awaitTurn?.(request, call);
        if (grant === undefined) return undefined;
        await new Promise((resolve) => setTimeout(resolve, TOLD_LATE_MS));
        const { holders } = await backend.inspect(request.resource, call);
        return holders.some(({ acquisitionId }) => acquisitionId === request.acquisitionId)
          ? grant
          : undefined;
      },
    }),
  },
  {
    name: 'a-steal-keeps-the-token',
    says: 'a stolen hold has the token of the former hold',
    expected: ['steal/the-token-rises'],
    backend: (backend) =>
      onGrants(backend, (grant, request) => {
        const token = tokens.get(request.resource);
        if (request.steal === true && token !== undefined) return { ...grant, fencingToken: token };
        if (grant.fencingToken !== undefined) tokens.set(request.resource, grant.fencingToken);
        return grant;
      }),
  },
  {
    name: 'a-steal-ends-one-hold',
    says: 'a steal ends one of the holds, and enters beside the others',
    expected: ['steal/ends-every-share'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { holders } = await backend.inspect(request.resource, call);
        const attempt = await backend.attempt(request, enqueue, call);
        if (request.steal === true && holders.length > 1) spared.set(request.resource, holders.slice(1));
        return attempt;
      },
      async inspect(resource, call) {
        const state = await backend.inspect(resource, call);
        return { ...state, holders: [...state.holders, ...(spared.get(resource) ?? [])] };
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
];

const TOLD_LATE_MS = 10;

const tokens = new Map<string, bigint>();
const spared = new Map<string, Awaited<ReturnType<LockBackend['inspect']>>['holders']>();
