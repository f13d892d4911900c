import { setImmediate as turn } from 'node:timers/promises';
import type { Mutant } from './mutant.ts';
import { onNames } from './on-grants.ts';

let tokens = 1n << 40n;

export const exclusionMutants: readonly Mutant[] = [
  {
    name: 'everybody-gets-in',
    says: 'a contended attempt is granted',
    expected: [
      'exclusion/second-attempt-is-contended',
      'exclusion/many-clients-never-overlap',
      'exclusion/own-hold-excludes-too',
      'exclusion/holds-through-renewals',
      'exclusion/at-once-one-wins',
      'names/exclude-as-written',
      'renewal/keeps-a-lease-alive',
    ],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status === 'granted') return attempt;
        return { status: 'granted', grant: { request, fencingToken: ++tokens, countedFrom: call.now() } };
      },
    }),
  },
  {
    name: 'locks-per-process',
    says: "processes do not see each other's holds",
    host: 'sqlite',
    expected: [
      'exclusion/three-processes-never-overlap',
      'shared/over-three-processes',
      'permits/over-three-processes',
    ],
    backend: (backend) => onNames(backend, (name) => `${process.pid} ${name}`),
  },
  {
    name: 'checks-then-takes',
    says: 'an attempt checks whether the resource is free, and takes it a moment later without another check',
    expected: ['exclusion/at-once-one-wins'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { holders, waiters } = await backend.inspect(request.resource, call);
        if (holders.length + waiters.length > 0) return backend.attempt(request, enqueue, call);
        await turn();
        await backend.forceRelease?.(request.resource, undefined, call);
        return backend.attempt(request, enqueue, call);
      },
    }),
  },
];
