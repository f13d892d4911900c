import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

export const fencingMutants: readonly Mutant[] = [
  {
    name: 'one-token-for-all',
    says: 'every grant has the same token',
    expected: [
      'fencing/rises-over-holders',
      'fencing/rises-over-clients',
      'fencing/rises-on-hand-off',
      'fencing/rises-after-expiry',
      'fencing/rises-after-force-release',
      'fencing/belongs-to-the-lease',
      'exclusion/many-clients-never-overlap',
      'shared/tokens-rise-over-both-modes',
      'permits/tokens-rise',
    ],
    backend: (backend) => onGrants(backend, (grant) => ({ ...grant, fencingToken: 1n })),
  },
  {
    name: 'tokens-count-per-client',
    says: 'every client counts its own tokens',
    host: 'sqlite',
    expected: [
      'fencing/rises-over-processes',
      'fencing/rises-after-kill',
      'exclusion/three-processes-never-overlap',
    ],
    backend(backend) {
      let token = 0n;
      return onGrants(backend, (grant) => ({ ...grant, fencingToken: ++token }));
    },
  },
  {
    name: 'hand-off-keeps-the-token',
    says: "who gets the resource from its holder gets the holder's token too",
    expected: ['fencing/rises-on-hand-off'],
    backend: (backend) => ({
      async awaitTurn(request, call) {
        const grant = await backend.awaitTurn?.(request, call);
        return grant && { ...grant, fencingToken: 1n };
      },
    }),
  },
  {
    name: 'lease-reads-the-latest-token',
    says: 'a lease gives the present token of its resource',
    expected: ['fencing/belongs-to-the-lease', 'ownership/stale-lease-learns-nothing'],
    lease: (lease) => {
      if (lease.fencingToken !== undefined) latest.set(lease.name, lease.fencingToken);
      return {
        get fencingToken() {
          return latest.get(lease.name);
        },
      };
    },
  },
];

const latest = new Map<string, bigint>();
