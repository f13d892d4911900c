import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

export const fencingMutants: readonly Mutant[] = [
  {
    name: 'fencing-is-not-declared',
    says: 'the backend gives tokens and declares none',
    expected: ['fencing/as-declared'],
    backend: (backend) => ({ capabilities: { ...backend.capabilities, fencing: 'none' } }),
  },
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
    name: 'renewal-mints-a-token',
    says: 'the store has a new token after every renewal',
    expected: ['fencing/renewal-keeps-it'],
    backend(backend) {
      const renewals = new Map<string, bigint>();
      return {
        renew(items, call) {
          for (const { grant } of items) {
            const { acquisitionId } = grant.request;
            renewals.set(acquisitionId, (renewals.get(acquisitionId) ?? 0n) + 1n);
          }
          return backend.renew(items, call);
        },
        async inspect(resource, call) {
          const state = await backend.inspect(resource, call);
          const holders = state.holders.map((holder) => ({
            ...holder,
            fencingToken: (holder.fencingToken ?? 0n) + (renewals.get(holder.acquisitionId) ?? 0n),
          }));
          return { ...state, holders };
        },
      };
    },
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
