import { type LockMode } from '@locks/core';
import type { LockBackend, AcquireRequest, Call } from '@locks/core/backend';
import { storeWith } from './modes.ts';
import { type Mutant } from './mutant.ts';
import { onRequests } from './on-grants.ts';

const SHARED: LockMode = { kind: 'shared' };

export const sharedMutants: readonly Mutant[] = [
  {
    name: 'a-writer-enters-beside-readers',
    says: 'an exclusive request is granted beside shares',
    expected: [
      'shared/readers-hold-together',
      'shared/never-beside-a-writer',
      'exclusion/random-kinds-at-once',
    ],
    backend: storeWith({
      fits: (rules, mode, fits) =>
        fits(mode) || (mode.kind === 'exclusive' && rules.holds.every((hold) => hold.mode.kind === 'shared')),
    }),
  },
  {
    name: 'readers-enter-beside-a-writer',
    says: 'a share is granted beside an exclusive hold',
    expected: ['shared/a-writer-is-alone', 'shared/never-beside-a-writer', 'exclusion/random-kinds-at-once'],
    backend: storeWith({ fits: (_, mode, fits) => mode.kind === 'shared' || fits(mode) }),
  },
  {
    name: 'writers-starve',
    says: 'readers enter beside readers, ahead of waiters',
    expected: ['shared/a-waiting-writer-holds-back-readers', 'shared/no-writer-starves'],
    backend: storeWith({
      admits: (rules, mode, admits) =>
        admits(mode) || (mode.kind === 'shared' && rules.holds.length > 0 && rules.fits(mode)),
    }),
  },
  {
    name: 'readers-starve',
    says: 'a writer in the queue is served before all readers in it',
    expected: ['shared/no-reader-starves'],
    backend: storeWith({
      next: (rules, next) =>
        rules.waiters.find(({ mode }) => mode.kind === 'exclusive' && rules.fits(mode)) ?? next(),
    }),
  },
  {
    name: 'one-neighbour-at-a-time',
    says: 'only the head of the queue is served when a hold ends',
    expected: [
      'shared/neighbours-enter-together',
      'permits/all-that-fit-enter',
      'fairness/as-the-model-says',
    ],
    backend: storeWith({ next: (rules, next) => (rules.holds.length === 0 ? next() : undefined) }),
  },
  {
    name: 'downgrade-by-way-of-free',
    says: 'a downgrade releases the resource and takes it again',
    expected: ['shared/downgrade-lets-no-writer-in', 'shared/downgrade-can-be-repeated'],
    backend: (backend) => ({
      async downgrade({ request }, call) {
        const shared = { ...request, mode: SHARED };
        await backend.abandon(request, call);
        const attempt = await backend.attempt(shared, false, call);
        return attempt.status === 'granted' ? { status: 'held' } : { status: 'lost', reason: 'taken-over' };
      },
    }),
  },
  {
    name: 'downgrade-is-only-said',
    says: 'a downgrade is answered and not done',
    expected: ['shared/downgrade-keeps-the-token', 'shared/downgrade-lets-readers-in'],
    backend: () => ({ downgrade: async () => ({ status: 'held' }) }),
  },
  {
    name: 'downgrade-brings-back',
    says: 'a downgrade of a lost hold takes a share',
    expected: ['shared/downgrade-of-a-lost-lease'],
    backend: (backend) => ({
      async downgrade(grant, call) {
        const renewalStatus = await backend.downgrade?.(grant, call);
        if (renewalStatus?.status !== 'lost') return renewalStatus ?? { status: 'held' };
        await backend.attempt({ ...grant.request, mode: SHARED }, false, call);
        return { status: 'held' };
      },
    }),
  },
  {
    name: 'a-share-for-every-attempt',
    says: 'an attempt repeated takes another share, or another permit',
    expected: ['shared/repeated-attempt-is-the-same-share', 'permits/repeated-attempt-is-the-same-permit'],
    backend: (backend) =>
      onRequests(backend, (request) =>
        request.mode.kind === 'exclusive'
          ? request
          : { ...request, acquisitionId: `${request.acquisitionId}${++attempts}` },
      ),
  },
  {
    name: 'a-quitter-stays-in-the-way',
    says: 'when a waiter gives up, the waiters behind it are not checked',
    expected: ['shared/who-gives-up-lets-others-through', 'permits/who-gives-up-lets-others-through'],
    backend: storeWith({
      next: (_, next) => (sleeping ? undefined : next()),
      abandon(store, args, abandon) {
        sleeping = store.queued(args[0]).some(({ id }) => id === args[1]);
        abandon(...args);
        sleeping = false;
      },
    }),
  },
  {
    name: 'a-late-release-counts',
    says: 'a release of a share that is not held ends the share of another',
    expected: ['shared/a-late-release-ends-no-other-share'],
    backend: (backend) => ({
      async release(grant, call) {
        const released = await backend.release(grant, call);
        if (released !== 'released') await endOneShare(backend, grant.request, call);
        return released;
      },
    }),
  },
];

let attempts = 0;
let sleeping = false;

/** As a store that counts shares without naming them: one release too many takes one of the count. */
async function endOneShare(
  backend: LockBackend,
  { resource, mode }: AcquireRequest,
  call: Call,
): Promise<void> {
  const { holders } = await backend.inspect(resource, call);
  const [held] = holders.filter((holder) => mode.kind === 'shared' && holder.mode.kind === 'shared');
  if (held !== undefined) await backend.forceRelease?.(resource, held.acquisitionId, call);
}
