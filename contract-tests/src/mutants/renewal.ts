import type { LockBackend, RenewalStatus } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

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
