import { channel, subscribe } from 'node:diagnostics_channel';
import type { LockBackend, Grant, RenewalStatus } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';
import { onGrants } from './on-grants.ts';

const unanswered: RenewalStatus = { status: 'unknown', error: new Error('the mutant did not ask') };

/** Changes the answers to renewals that core gets. */
function onRenewalStatuses(
  backend: LockBackend,
  change: (renewalStatus: RenewalStatus) => RenewalStatus,
): LockBackend {
  return delegate(backend, {
    renew: async (items, call) => (await backend.renew(items, call)).map(change),
  });
}

export const renewalMutants: readonly Mutant[] = [
  {
    name: 'renewal-is-a-lie',
    says: 'the store answers held and extends nothing',
    expected: [
      'exclusion/holds-through-renewals',
      'renewal/keeps-a-lease-alive',
      'renewal/renew-pushes-the-end',
    ],
    backend: () => ({ renew: async (items) => items.map(() => ({ status: 'held' })) }),
  },
  {
    name: 'renews-whoever-has-the-id',
    says: 'a renewal confirms a later grant of the same acquisition',
    expected: ['renewal/confirms-its-own-grant'],
    backend: (backend) => ({
      async renew(items, call) {
        const grants = items.map(async ({ grant, ttlMs }) => {
          const { resource, acquisitionId } = grant.request;
          const { holders } = await backend.inspect(resource, call);
          const hold = holders.find((holder) => holder.acquisitionId === acquisitionId);
          return {
            grant: { ...grant, ...(hold?.fencingToken && { fencingToken: hold.fencingToken }) },
            ttlMs,
          };
        });
        return backend.renew(await Promise.all(grants), call);
      },
    }),
  },
  {
    name: 'one-token-per-acquisition',
    says: 'an acquisition that is granted again after the end of its hold has the token of that hold',
    expected: ['renewal/confirms-its-own-grant'],
    backend: (backend) => {
      const tokens = new Map<string, Grant['fencingToken']>();
      return onGrants(backend, (grant, { acquisitionId }) => {
        const fencingToken = tokens.get(acquisitionId) ?? grant.fencingToken;
        tokens.set(acquisitionId, fencingToken);
        return { ...grant, ...(fencingToken !== undefined && { fencingToken }) };
      });
    },
  },
  {
    name: 'renews-nothing',
    says: 'core sends no renewals',
    expected: [
      'exclusion/holds-through-renewals',
      'renewal/keeps-a-lease-alive',
      'renewal/new-ttl-stays',
      'renewal/one-call-for-many',
      'renewal/failure-is-tried-again',
      'renewal/lost-answer-ends-at-once',
    ],
    calls: () => ({ renew: async (items) => items.map(() => unanswered) }),
  },
  {
    name: 'manual-is-automatic',
    says: 'a lease with renewal manual is renewed automatically',
    expected: ['renewal/manual-is-left-alone', 'expiry/reported-before-the-next-holds'],
    lock: (lock) => ({ acquire: (options) => lock.acquire({ ...options, renewal: 'auto' }) }),
  },
  {
    name: 'renew-ignores-its-ttl',
    says: 'lease.renew(ttlMs) renews by the former ttl',
    expected: [
      'renewal/renew-pushes-the-end',
      'renewal/new-ttl-stays',
      'renewal/shorter-ttl-counts-from-sending',
    ],
    lease: (lease) => ({ renew: () => lease.renew() }),
  },
  {
    name: 'new-ttl-is-forgotten',
    says: 'automatic renewals go back to the first ttl',
    expected: ['renewal/new-ttl-stays'],
    calls: (backend) => ({
      renew(items, call) {
        // The calls of lease.renew() have a signal; those of the automatic renewal have none.
        const asked = 'signal' in call;
        return backend.renew(
          asked ? items : items.map(({ grant }) => ({ grant, ttlMs: grant.request.ttlMs })),
          call,
        );
      },
    }),
  },
  {
    name: 'one-call-per-lease',
    says: 'every lease is renewed by a call of its own',
    expected: ['renewal/one-call-for-many'],
    calls: (backend) => ({
      renew: async (items, call) =>
        (await Promise.all(items.map((item) => backend.renew([item], call)))).flat(),
    }),
  },
  {
    name: 'max-hold-is-ignored',
    says: 'a lease is renewed for ever',
    expected: ['renewal/ends-at-max-hold', 'renewal/slow-hold-is-reported-once'],
    lock: (lock) => ({
      acquire: (options) => lock.acquire({ ...options, maxHoldMs: undefined }),
    }),
  },
  {
    name: 'slow-hold-is-reported-twice',
    says: 'a slow hold is reported again',
    expected: ['renewal/slow-hold-is-reported-once'],
    locks(locks) {
      tellSlowHoldsTwice();
      return locks;
    },
  },
  {
    name: 'renews-what-was-released',
    says: 'a renewal is sent after the release',
    expected: ['renewal/released-lease-is-not-renewed'],
    calls: (backend) => ({
      async release(grant, call) {
        const answer = await backend.release(grant, call);
        renewLater(backend, grant);
        return answer;
      },
    }),
  },
  {
    name: 'renewal-recreates',
    says: 'a renewal takes the resource if nobody has it',
    expected: ['renewal/recreates-nothing', 'loss/force-release-is-reported', 'loss/eviction-is-reported'],
    backend: (backend) => ({
      async renew(items, call) {
        const renewalStatuses = await backend.renew(items, call);
        return Promise.all(
          renewalStatuses.map(async (renewalStatus, index): Promise<RenewalStatus> => {
            const item = items[index];
            if (renewalStatus.status !== 'lost' || item === undefined) return renewalStatus;
            const attempt = await backend.attempt({ ...item.grant.request, ttlMs: item.ttlMs }, false, call);
            return attempt.status === 'granted' ? { status: 'held' } : renewalStatus;
          }),
        );
      },
    }),
  },
  {
    name: 'answers-out-of-order',
    says: 'the answers to a renewal come in another order',
    expected: ['renewal/answers-in-order'],
    backend: (backend) => ({ renew: async (items, call) => (await backend.renew(items, call)).toReversed() }),
  },
  {
    name: 'unknown-is-taken-for-held',
    says: 'a renewal without a clear answer counts as a success',
    expected: [
      'renewal/unknown-moves-nothing',
      'renewal/unanswered-renew-leaves-the-lease',
      'faults/failing-renewals',
      'faults/store-away-while-held',
    ],
    calls: (backend) => ({
      async renew(items, call) {
        const renewalStatuses = await backend.renew(items, call).catch(() => items.map(() => unanswered));
        return renewalStatuses.map((renewalStatus) =>
          renewalStatus.status === 'unknown' ? { status: 'held' } : renewalStatus,
        );
      },
    }),
  },
  {
    name: 'unknown-is-taken-for-lost',
    says: 'a renewal without a clear answer counts as a loss',
    expected: [
      'renewal/unknown-moves-nothing',
      'renewal/failure-is-tried-again',
      'renewal/unanswered-renew-leaves-the-lease',
    ],
    calls: (backend) => ({
      renew: (items, call) =>
        backend.renew(items, call).catch(() => items.map(() => ({ status: 'lost', reason: 'unconfirmed' }))),
    }),
  },
  {
    name: 'renewal-is-tried-once',
    says: 'no renewal is sent after a failed one',
    expected: ['renewal/failure-is-tried-again'],
    calls: (backend) => {
      let failed = false;
      return {
        async renew(items, call) {
          if (failed) return items.map(() => unanswered);
          try {
            return await backend.renew(items, call);
          } catch (error) {
            failed = true;
            throw error;
          }
        },
      };
    },
  },
  {
    name: 'lost-is-taken-for-unknown',
    says: 'a lease that the store reports as lost stays valid to its deadline',
    expected: [
      'renewal/lost-answer-ends-at-once',
      'loss/force-release-is-reported',
      'loss/eviction-is-reported',
      'reentrancy/loss-on-every-level',
      'reentrancy/within-is-checked',
    ],
    calls: (backend) =>
      onRenewalStatuses(backend, (renewalStatus) =>
        renewalStatus.status === 'lost' ? unanswered : renewalStatus,
      ),
  },
  {
    name: 'renewal-works-once',
    says: 'of two renewals of one lease in one call the second is answered with a loss',
    expected: ['idempotence/renewal-sent-twice'],
    backend: (backend) => ({
      async renew(items, call) {
        const renewalStatuses = await backend.renew(items, call);
        const seen = new Set<string>();
        return renewalStatuses.map((renewalStatus, index) => {
          const id = items[index]?.grant.request.acquisitionId ?? '';
          if (seen.has(id)) return { status: 'lost', reason: 'taken-over' };
          seen.add(id);
          return renewalStatus;
        });
      },
    }),
  },
  {
    name: 'puts-nothing-right',
    says: 'no renewal is sent to the store after a longer one',
    expected: ['renewal/longer-one-overtakes-a-shorter'],
    calls: (backend) => {
      const longer = new Set<string>();
      return {
        renew: (items, call) => {
          const [item] = items;
          if (item === undefined) return backend.renew(items, call);
          const { acquisitionId, ttlMs } = item.grant.request;
          if (longer.has(acquisitionId)) return Promise.resolve(items.map(() => ({ status: 'held' })));
          if (item.ttlMs > ttlMs) longer.add(acquisitionId);
          return backend.renew(items, call);
        },
      };
    },
  },
];

function renewLater(backend: LockBackend, grant: Grant): void {
  const now = (): number => performance.now();
  pause(20)
    .then(() => backend.renew([{ grant, ttlMs: grant.request.ttlMs }], { now, deadline: now() + 1_000 }))
    .catch(() => {});
}

let telling = false;

function tellSlowHoldsTwice(): void {
  if (telling) return;
  telling = true;
  const slow = channel('locks:slow-hold');
  subscribe('locks:slow-hold', (message) => {
    const event = message as { again?: true };
    if (event.again === undefined) setTimeout(() => slow.publish({ ...event, again: true }), 10);
  });
}
