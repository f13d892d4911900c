import { setImmediate as turn } from 'node:timers/promises';
import type { AcquireRequest, Call, LockBackend, RenewItem, Standing } from '@locks/core';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

/** Backends that look, and act on what they saw a moment ago. */
export const raceMutants: readonly Mutant[] = [
  {
    name: 'release-looks-then-frees',
    says: 'a release looks whether its acquisition holds, and frees the resource a moment later, whoever has it by then',
    host: 'memory',
    expected: ['ownership/races-of-one-grant'],
    backend: (backend) =>
      delegate(backend, {
        async release({ request }, call) {
          if (!(await holds(backend, request, call))) return 'not-held';
          await turn();
          await backend.forceRelease?.(request.resource, undefined, call);
          return 'released';
        },
      }),
  },
  {
    name: 'abandon-looks-then-frees',
    says: 'an abandon looks whether its acquisition holds, and frees the resource a moment later, whoever has it by then',
    host: 'memory',
    expected: ['ownership/races-of-one-grant'],
    backend: (backend) =>
      delegate(backend, {
        async abandon(request, call) {
          if (!(await holds(backend, request, call))) return backend.abandon(request, call);
          await turn();
          await backend.forceRelease?.(request.resource, undefined, call);
        },
      }),
  },
  {
    name: 'renewal-looks-then-takes',
    says: 'a renewal looks whether its acquisition holds, and a moment later takes the resource where it is gone by then',
    host: 'memory',
    expected: ['ownership/races-of-one-grant'],
    backend: (backend) =>
      delegate(backend, {
        renew: (items, call) => Promise.all(items.map((item) => renewByTaking(backend, item, call))),
      }),
  },
  {
    name: 'takes-what-looks-over',
    says: 'an attempt that finds a hold ended by its ttl takes the resource a moment later, whoever has it by then',
    host: 'memory',
    expected: ['exclusion/one-wins-after-an-end'],
    backend: (backend) => {
      const { abandon, release } = backend;
      return delegate(backend, {
        async attempt(request, enqueue, call) {
          const { resource } = request;
          const { holders, waiters } = await backend.inspect(resource, call);
          if (holders.length + waiters.length === 0 && unreleased.has(resource)) {
            await turn();
            await backend.forceRelease?.(resource, undefined, call);
          }
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') unreleased.set(resource, request.acquisitionId);
          return attempt;
        },
        abandon(request, call) {
          forget(request);
          return abandon.call(backend, request, call);
        },
        release(grant, call) {
          forget(grant.request);
          return release.call(backend, grant, call);
        },
      });
    },
  },
  {
    name: 'each-waiter-takes-what-ran-out',
    says: 'a waiter takes the resource when the hold before it has run out, also where another was let in by then',
    host: 'memory',
    expected: ['exclusion/one-wins-after-an-end'],
    backend: (backend) =>
      delegate(backend, {
        async awaitTurn(request, call) {
          const turnCame = backend.awaitTurn?.(request, call) ?? Promise.resolve(undefined);
          const waiting = watched(turnCame);
          const [before] = (await backend.inspect(request.resource, call)).holders;
          const ranOut = pause((before?.expiresInMs ?? 0) + 3).then(async () => {
            const [now] = (await backend.inspect(request.resource, call)).holders;
            if (waiting.settled || now?.acquisitionId === before?.acquisitionId) return turnCame;
            const attempt = await backend.attempt({ ...request, steal: true }, false, call);
            return attempt.status === 'granted' ? attempt.grant : turnCame;
          });
          return Promise.race([turnCame, ranOut]);
        },
      }),
  },
];

function watched(work: Promise<unknown>): { readonly settled: boolean } {
  const seen = { settled: false };
  const settle = (): void => {
    seen.settled = true;
  };
  work.then(settle, settle);
  return seen;
}

/** The last acquisition of a resource that was not given back, of all clients. */
const unreleased = new Map<string, string>();

function forget({ resource, acquisitionId }: AcquireRequest): void {
  if (unreleased.get(resource) === acquisitionId) unreleased.delete(resource);
}

async function holds(backend: LockBackend, request: AcquireRequest, call: Call): Promise<boolean> {
  const { holders } = await backend.inspect(request.resource, call);
  return holders.some(({ acquisitionId }) => acquisitionId === request.acquisitionId);
}

async function renewByTaking(backend: LockBackend, item: RenewItem, call: Call): Promise<Standing> {
  const { request } = item.grant;
  const held = await holds(backend, request, call);
  await turn();
  const [standing] = await backend.renew([item], call);
  if (!held || standing?.status === 'held') return standing ?? { status: 'unknown', error: undefined };
  await backend.attempt({ ...request, steal: true }, false, call);
  return { status: 'held' };
}
