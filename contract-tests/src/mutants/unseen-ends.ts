import type { LockBackend } from '@locks/core';
import { delegate } from './delegate.ts';
import { idempotenceMutants } from './idempotence.ts';
import type { Mutant } from './mutant.ts';
import { onRenewals } from './on-grants.ts';
import { ownershipMutants } from './ownership.ts';

/** Mutants whose backends move the end of a hold wrongly and do not show it: the suite must find out by other clients. */
export const unseenEndMutants: readonly Mutant[] = [
  {
    name: 'renewal-ignores-the-owner-unseen',
    says: 'a renewal of a lost hold is answered with lost, and extends the hold of the successor; inspect shows no ends',
    host: 'memory',
    expected: ['ownership/stale-holder-cannot-renew', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) => {
      const pushing = brokenAs('renewal-ignores-the-owner', backend);
      return withoutEnds(
        delegate(backend, {
          async renew(items, call) {
            const standings = await backend.renew(items, call);
            await pushing.renew(items, call);
            return standings;
          },
        }),
      );
    },
  },
  {
    name: 'repeated-attempt-gives-more-time-unseen',
    says: 'a repeated attempt of an id that holds is answered with the whole ttl, and inspect shows no ends',
    host: 'memory',
    expected: ['idempotence/repeated-attempt'],
    backend: (backend) => withoutEnds(brokenAs('repeated-attempt-gives-more-time', backend)),
  },
  {
    name: 'renewal-keeps-the-first-ttl-unseen',
    says: 'a renewal extends by the ttl of the acquire instead of its own, and inspect shows no ends',
    host: 'memory',
    expected: ['renewal/renew-pushes-the-end', 'expiry/holder-ends-before-the-store'],
    backend: (backend) => withoutEnds(onRenewals(backend, ({ grant }) => grant.request.ttlMs)),
  },
  {
    name: 'release-is-never-sure',
    says: 'a release of an ended hold is answered with unknown, though it was sent once',
    host: 'memory',
    expected: ['ownership/stale-holder-cannot-release', 'ownership/stranger-cannot-release-or-renew'],
    backend: (backend) =>
      delegate(backend, {
        async release(grant, call) {
          const answer = await backend.release(grant, call);
          return answer === 'not-held' ? 'unknown' : answer;
        },
      }),
  },
];

function brokenAs(name: string, backend: LockBackend): LockBackend {
  const found = [...ownershipMutants, ...idempotenceMutants].find((mutant) => mutant.name === name);
  if (found?.backend === undefined) throw new Error(`there is no mutant ${name} of a backend`);
  return found.backend(backend);
}

/** A backend as of a store that cannot show when a hold ends. */
function withoutEnds(backend: LockBackend): LockBackend {
  return delegate(backend, {
    async inspect(resource, call) {
      const state = await backend.inspect(resource, call);
      const holders = state.holders.map((holder) => {
        const { expiresInMs: _, ...rest } = holder;
        return rest;
      });
      return { ...state, holders };
    },
  });
}
