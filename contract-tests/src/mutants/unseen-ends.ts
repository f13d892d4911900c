import type { LockBackend } from '@locks/core';
import { delegate } from './delegate.ts';
import { idempotenceMutants } from './idempotence.ts';
import type { Mutant } from './mutant.ts';
import { onRenewals } from './on-grants.ts';
import { ownershipMutants } from './ownership.ts';

/** Backends that move an end wrongly, and do not show when a hold ends: what others can do must tell. */
export const unseenEndMutants: readonly Mutant[] = [
  {
    name: 'renewal-ignores-the-owner-unseen',
    says: 'a renewal of what is lost says so, and pushes the end of whoever holds by now; inspect tells no ends',
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
    says: 'an attempt of the id that holds is told the whole ttl again, and inspect tells no ends',
    host: 'memory',
    expected: ['idempotence/repeated-attempt'],
    backend: (backend) => withoutEnds(brokenAs('repeated-attempt-gives-more-time', backend)),
  },
  {
    name: 'renewal-keeps-the-first-ttl-unseen',
    says: 'a renewal pushes the end by the ttl of the acquire, whatever it asks for, and inspect tells no ends',
    host: 'memory',
    expected: ['renewal/renew-pushes-the-end', 'expiry/holder-ends-before-the-store'],
    backend: (backend) => withoutEnds(onRenewals(backend, ({ grant }) => grant.request.ttlMs)),
  },
  {
    name: 'release-is-never-sure',
    says: 'a release of what is not held is answered with unknown, though it was sent once',
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

/** As of a store that cannot tell when a hold ends. */
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
