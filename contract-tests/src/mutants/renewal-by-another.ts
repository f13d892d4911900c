import type { Grant, LockBackend, RenewItem, RenewalStatus } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants } from './on-grants.ts';

const LOST: RenewalStatus = { status: 'lost', reason: 'taken-over' };

/** Remembers the grants that a backend made. */
function ownGrants(backend: LockBackend): { readonly granting: LockBackend; readonly own: WeakSet<Grant> } {
  const own = new WeakSet<Grant>();
  const granting = onGrants(backend, (grant) => {
    own.add(grant);
    return grant;
  });
  return { granting, own };
}

/** Answers the renewals of grants that another client got; `send` asks the store. */
function onRenewalsForOthers(
  backend: LockBackend,
  answer: (item: RenewItem, send: (ttlMs: number) => Promise<RenewalStatus>) => Promise<RenewalStatus>,
): LockBackend {
  const { granting, own } = ownGrants(backend);
  return delegate(granting, {
    renew: (items, call) =>
      Promise.all(
        items.map(async (item) => {
          const send = async (ttlMs: number): Promise<RenewalStatus> =>
            (await backend.renew([{ ...item, ttlMs }], call))[0] as RenewalStatus;
          return own.has(item.grant) ? await send(item.ttlMs) : await answer(item, send);
        }),
      ),
  });
}

export const renewalByAnotherMutants: readonly Mutant[] = [
  {
    name: 'renews-only-what-it-was-granted',
    says: 'a client reports the holds of others as lost',
    host: 'sqlite',
    expected: [
      'renewal/by-another-client',
      'renewal/by-another-client-with-another-ttl',
      'renewal/by-another-client-after-a-downgrade',
    ],
    backend: (backend) => onRenewalsForOthers(backend, async () => LOST),
  },
  {
    name: 'holds-of-others-keep-their-ttl',
    says: 'a renewal for another client sets the ttl of the grant, and answers with the one that was asked for',
    host: 'sqlite',
    expected: ['renewal/by-another-client-with-another-ttl', 'renewal/by-another-client-after-a-downgrade'],
    backend: (backend) =>
      onRenewalsForOthers(backend, async ({ grant, ttlMs }, send) => ({
        ...(await send(grant.request.ttlMs)),
        validForMs: ttlMs,
      })),
  },
  {
    name: 'a-reader-is-no-writer-of-another',
    says: 'a client that did not downgrade a hold itself looks for the former mode, and reports a loss',
    host: 'sqlite',
    expected: ['renewal/by-another-client-after-a-downgrade'],
    backend: (backend) => {
      const held = async ({ grant: { request } }: RenewItem): Promise<string | undefined> => {
        const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
        const { holders } = await backend.inspect(request.resource, call);
        return holders.find(({ acquisitionId }) => acquisitionId === request.acquisitionId)?.mode.kind;
      };
      return onRenewalsForOthers(backend, async (item, send) =>
        (await held(item)) === item.grant.request.mode.kind ? send(item.ttlMs) : LOST,
      );
    },
  },
  {
    name: 'holds-of-others-never-end',
    says: 'a client answers renewals for others without the store',
    host: 'sqlite',
    expected: ['renewal/by-another-client', 'renewal/by-another-client-revives-nothing'],
    backend: (backend) => onRenewalsForOthers(backend, async () => ({ status: 'held' })),
  },
  {
    name: 'ends-what-it-cannot-renew',
    says: 'a client that was not granted a hold, and cannot renew it, abandons it',
    expected: ['renewal/by-another-client'],
    backend(backend) {
      const { granting, own } = ownGrants(backend);
      return delegate(granting, {
        renew: async (items, call) => {
          for (const { grant } of items) if (!own.has(grant)) await backend.abandon(grant.request, call);
          return backend.renew(items, call);
        },
      });
    },
  },
];
