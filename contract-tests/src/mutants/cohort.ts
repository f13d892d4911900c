import type { LockBackend, AcquireRequest, Grant } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

/** The low bits of a token count the turns of a lease. */
const TURN_BITS = 8n;

interface Held {
  /** What the backend granted. */
  readonly grant: Grant;
  readonly grantedAt: number;
  readonly turns: number;
  isLost: boolean;
}

interface Waiting {
  readonly request: AcquireRequest;
  readonly enter: (grant: Grant) => void;
}

/** Passes leases on beside the backend, without a word with it, to those who wait in this process. */
function passesOn(
  backend: LockBackend,
  next: (
    waiting: readonly Waiting[],
    held: Held,
    cohort: { turns: number; withinMs: number },
  ) => Waiting | undefined,
): LockBackend {
  const { cohort } = backend.capabilities;
  if (cohort === undefined) throw new Error(`${backend.name} has no cohorts`);
  const holds = new Map<string, Held>();
  const waiting = new Map<string, Waiting>();
  const took = (grant: Grant): Grant => {
    const turns = Number((grant.fencingToken ?? 0n) & 255n) + 1;
    const isFirst = turns === 1;
    const { acquisitionId, resource } = grant.request;
    const before = [...holds.values()].find((held) => held.grant.request.resource === resource);
    const grantedAt = isFirst ? performance.now() : (before?.grantedAt ?? performance.now());
    holds.set(acquisitionId, { grant, grantedAt, turns, isLost: false });
    waiting.delete(acquisitionId);
    return grant;
  };
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      return attempt.status === 'granted' ? { ...attempt, grant: took(attempt.grant) } : attempt;
    },
    async awaitTurn(request, call) {
      const passed = new Promise<Grant>((enter) => waiting.set(request.acquisitionId, { request, enter }));
      const own = backend.awaitTurn?.(request, call).then((grant) => grant && took(grant));
      return Promise.race([passed, own]);
    },
    abandon(request, call) {
      waiting.delete(request.acquisitionId);
      return backend.abandon(request, call);
    },
    async renew(items, call) {
      const renewalStatuses = await backend.renew(items, call);
      for (const [index, { grant }] of items.entries()) {
        const held = holds.get(grant.request.acquisitionId);
        if (held !== undefined && renewalStatuses[index]?.status === 'lost') held.isLost = true;
      }
      return renewalStatuses;
    },
    async release(grant, call) {
      const { acquisitionId, resource } = grant.request;
      const held = holds.get(acquisitionId);
      holds.delete(acquisitionId);
      if (held === undefined) return backend.release(grant, call);
      const here = [...waiting.values()].filter(({ request }) => request.resource === resource);
      const follower = next(here, held, cohort);
      if (follower === undefined) return backend.release(held.grant, call);
      const { request } = follower;
      waiting.delete(request.acquisitionId);
      holds.set(request.acquisitionId, { ...held, turns: held.turns + 1 });
      // Before its own wait ends without a grant.
      follower.enter({ ...grant, request, fencingToken: (grant.fencingToken ?? 0n) + 1n });
      await backend.abandon(request, call);
      return 'released';
    },
  });
}

const endOf = ({ countedFrom, validForMs, request }: Grant): number =>
  countedFrom + (validForMs ?? request.ttlMs);

export const cohortMutants: readonly Mutant[] = [
  {
    name: 'a-turn-after-the-end',
    says: 'a lease is passed on after its ttl, as after its maxHoldMs',
    host: 'cohort-memory',
    expected: ['cohort/nobody-follows-an-expired-lease'],
    backend: (backend) =>
      passesOn(backend, ([first], { grant }) => (performance.now() > endOf(grant) ? first : undefined)),
  },
  {
    name: 'a-turn-after-a-steal',
    says: 'a lease is passed on after a renewal found that it was stolen',
    host: 'cohort-memory',
    expected: ['cohort/nobody-follows-a-stolen-lease'],
    backend: (backend) => passesOn(backend, ([first], { isLost }) => (isLost ? first : undefined)),
  },
  {
    name: 'one-token-for-all-turns',
    says: 'all turns of a lease have the token of the first',
    host: 'cohort-memory',
    expected: ['cohort/tokens-rise-with-every-turn'],
    backend: (backend) =>
      onGrants(backend, (grant) => ({
        ...grant,
        fencingToken: ((grant.fencingToken ?? 0n) >> TURN_BITS) << TURN_BITS,
      })),
  },
];
