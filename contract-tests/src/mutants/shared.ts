import { isLockError, type LockMode } from '@locks/core';
import type { LockBackend, Grant, AcquireRequest, Call } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import { onModes, storeWith } from './modes.ts';
import { type Mutant } from './mutant.ts';
import { onRequests } from './on-grants.ts';

const SHARED: LockMode = { kind: 'shared' };

export const sharedMutants: readonly Mutant[] = [
  {
    name: 'readers-exclude-each-other',
    says: 'a share is an exclusive hold',
    expected: [
      'shared/readers-hold-together',
      'shared/neighbours-enter-together',
      'shared/inspect-shows-every-reader',
    ],
    backend: (backend) => onModes(backend, (mode) => (mode.kind === 'shared' ? { kind: 'exclusive' } : mode)),
  },
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
    name: 'one-ttl-for-all',
    says: 'every renewal and every newcomer extends all holds',
    expected: ['shared/every-share-has-its-own-end', 'permits/every-permit-has-its-own-end'],
    backend: storeWith({
      store: {
        renew(store, args, renew) {
          const renewalStatus = renew(...args);
          const holders = store.holders(args[0].request.resource);
          const latest = Math.max(...holders.map(({ until = 0 }) => until));
          for (const hold of holders) hold.until = latest;
          return renewalStatus;
        },
      },
    }),
  },
  {
    name: 'the-first-to-leave-frees-all',
    says: 'the release of one share ends all',
    expected: ['shared/readers-hold-together'],
    backend: (backend) => ({
      async release(grant, call) {
        const released = await backend.release(grant, call);
        if (grant.request.mode.kind === 'shared')
          await backend.forceRelease?.(grant.request.resource, undefined, call);
        return released;
      },
    }),
  },
  {
    name: 'downgrade-without-wake-up',
    says: 'a downgrade does not wake waiting readers',
    expected: ['shared/downgrade-lets-readers-in'],
    backend: storeWith({
      store: {
        downgrade(store, [{ request }]) {
          const held = store.holders(request.resource).find(({ id }) => id === request.acquisitionId);
          if (held === undefined) return { status: 'lost', reason: 'taken-over' };
          held.mode = SHARED;
          return { status: 'held' };
        },
      },
    }),
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
    name: 'downgrade-forgets-the-grant-before',
    says: 'a grant from before the downgrade is no longer known',
    expected: ['shared/downgrade-can-be-repeated'],
    backend: forgetsTheGrantBefore,
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
    name: 'upgrade-by-asking',
    says: 'a write lock within a read lease re-enters as a reader',
    expected: ['shared/a-writer-may-read'],
    locks: (locks) => ({
      readWriteLock(name, options) {
        const { read, write } = locks.readWriteLock(name, options);
        const original = write.acquire.bind(write);
        const acquire: typeof write.acquire = async (given) => {
          try {
            return await original(given);
          } catch (error) {
            if (!isLockError(error, 'LOCK_REENTRANT')) throw error;
            return (await read.acquire(given)) as Awaited<ReturnType<typeof write.acquire>>;
          }
        };
        write.acquire = acquire;
        return { name, read, write };
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
    name: 'one-holder-is-shown',
    says: 'of several holders inspect shows the first',
    expected: ['shared/inspect-shows-every-reader'],
    backend: (backend) => ({
      async inspect(resource, call) {
        const state = await backend.inspect(resource, call);
        return { ...state, holders: state.holders.slice(0, 1) };
      },
    }),
  },
  {
    name: 'force-ends-one',
    says: 'a forced release ends the first of several holds',
    expected: ['shared/forced-release-ends-all-or-one'],
    backend: (backend) => ({
      async forceRelease(resource, id, call) {
        const { holders } = await backend.inspect(resource, call);
        return (await backend.forceRelease?.(resource, id ?? holders[0]?.acquisitionId, call)) ?? [];
      },
    }),
  },
  {
    name: 'the-stale-end-others',
    says: 'the release of a former holder ends the hold of another',
    expected: ['shared/a-stale-reader-changes-nothing', 'permits/not-issued-twice-after-an-end'],
    backend: (backend) => ({
      async release(grant, call) {
        const released = await backend.release(grant, call);
        if (released !== 'not-held' || grant.request.mode.kind === 'exclusive') return released;
        const { holders } = await backend.inspect(grant.request.resource, call);
        await backend.forceRelease?.(grant.request.resource, holders[0]?.acquisitionId, call);
        return released;
      },
    }),
  },
  {
    name: 'a-quitter-stays-in-the-way',
    says: 'when a waiter gives up, the waiters behind it are not checked',
    expected: ['shared/who-gives-up-lets-others-through', 'permits/who-gives-up-lets-others-through'],
    backend: storeWith({
      next: (_, next) => (sleeping ? undefined : next()),
      store: {
        abandon(store, args, abandon) {
          sleeping = store.queued(args[0]).some(({ id }) => id === args[1]);
          abandon(...args);
          sleeping = false;
        },
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
  {
    name: 'a-late-abandon-counts',
    says: 'an abandon of a share that is not held ends the share of another',
    expected: ['shared/a-late-release-ends-no-other-share'],
    backend: (backend) => ({
      async abandon(request, call) {
        const { holders, waiters } = await backend.inspect(request.resource, call);
        const isKnown = [...holders, ...waiters].some(
          ({ acquisitionId }) => acquisitionId === request.acquisitionId,
        );
        await (isKnown ? backend.abandon(request, call) : endOneShare(backend, request, call));
      },
    }),
  },
];

let attempts = 0;
let sleeping = false;

function forgetsTheGrantBefore(backend: LockBackend): LockBackend {
  const downgraded = new Set<string>();
  const isOld = ({ request }: Grant): boolean =>
    request.mode.kind === 'exclusive' && downgraded.has(request.acquisitionId);
  return delegate(backend, {
    async downgrade(grant, call) {
      const renewalStatus = await backend.downgrade?.(grant, call);
      downgraded.add(grant.request.acquisitionId);
      return renewalStatus ?? { status: 'held' };
    },
    renew: async (items, call) =>
      (await backend.renew(items, call)).map((renewalStatus, index) => {
        const item = items[index];
        return item !== undefined && isOld(item.grant)
          ? { status: 'lost', reason: 'taken-over' }
          : renewalStatus;
      }),
    release: async (grant, call) => (isOld(grant) ? 'not-held' : backend.release(grant, call)),
  });
}

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
