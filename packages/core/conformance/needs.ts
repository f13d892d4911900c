import { copiedGrant } from '../src/backend/copied-grant.ts';
import type { BackendFeature, LockMode } from '../src/backend/types.ts';
import { createLocks, type LockManager } from '../src/create-locks.ts';
import { isLockError } from '../src/errors.ts';
import type { RenewalThread } from '../src/lifetime/renewal-thread.ts';
import { adopt } from '../src/transfer/index.ts';
import { CallCounter } from './around-calls.ts';
import type { CaseContext } from './case-context.ts';
import { type ConformanceCase, noHook, without } from './case.ts';
import type { Harness } from './harness.ts';
import { grab, holdersOf, openCall } from './raw.ts';
import { SafetyViolation } from './safety-violation.ts';
import { startWaiting } from './waiter.ts';

/** A capability that a case needs, and a check that asserts its absence. */
export interface Need {
  readonly missing: NonNullable<ConformanceCase['missing']>;
  readonly refused: (context: CaseContext) => Promise<void>;
}

/** For cases with clients of the same store in other processes. */
export const processes: Need = {
  missing: ({ reach }) => (reach === 'process' ? without('the store is inside one process') : undefined),
  refused: processesAreApart,
};
export const network: Need = {
  missing: ({ reach }) =>
    reach === 'network' ? undefined : without('all clients are on one machine, and share its clocks'),
  refused: oneMachineSharesItsStore,
};
/** For cases with proxies between a client and a store that it reaches by a network. */
export const wire: Need = {
  missing: (capabilities, harness) =>
    network.missing(capabilities, harness) ??
    (harness.faults?.wire === undefined ? noHook('faults.wire') : undefined),
  refused: oneMachineSharesItsStore,
};
export const leaseTenure: Need = {
  missing: ({ tenure }) =>
    tenure === 'lease' ? undefined : without('a session, not a ttl, ends an abandoned hold'),
  refused: ttlEndsNothing,
};
/** For cases in which another client renews. */
export const anyClient: Need = {
  missing: ({ renewal }) =>
    renewal === 'any-client' ? undefined : without('only the client that was granted renews'),
  refused: anotherLeavesTheHold,
};
/** For cases in which a thread renews. */
export const thread: Need = { missing: anyClient.missing, refused: threadsAreRefused };
/** For cases with clients that live for less than the ttl. */
export const clockExpiry: Need = {
  missing: ({ expiry = 'clock' }) =>
    expiry === 'clock' ? undefined : without('a hold ends for those who have seen it for its ttl'),
  refused: newcomersAreRefused,
};
export const fencing: Need = {
  missing: (capabilities) =>
    capabilities.fencing === 'none' ? without('no fencing token is declared') : undefined,
  async refused(context) {
    const lease = await (await context.client()).locks.lock(context.name()).acquire();
    if (lease.fencingToken !== undefined)
      throw new Error(`no token is declared, and the lease has ${lease.fencingToken}`);
    await lease.release();
  },
};
/** For cases in which every client has one waiter: then cohorts keep the order, too. */
export const fifo: Need = {
  missing: ({ order }) => (order === 'none' ? without('no order is declared') : undefined),
  refused: everyWaiterIsGranted,
};
/** For cases in which a client has several waiters, and the order of all counts. */
export const strictOrder: Need = {
  missing: ({ order }) =>
    order === 'cohort' ? without('a lease may serve later acquisitions of its process first') : undefined,
  refused: everyWaiterIsGranted,
};
export const cohorts: Need = {
  missing: ({ order }) =>
    order === 'cohort' ? undefined : without('every acquisition is granted by the store'),
  refused: noBoundIsDeclared,
};
/** For cases that inspect waiters. */
export const waiters: Need = {
  missing: ({ features }) => (features.includes('waiters') ? undefined : without('waiters are not shown')),
  refused: waitersAreHidden,
};
export const forceRelease = feature('force-release', (locks, name) => locks.forceRelease(name));
export const list = feature('list', (locks) => locks.list()[Symbol.asyncIterator]().next());
export const steal = feature('steal', (locks, name) => locks.lock(name).acquire({ steal: true }));
const NO_TICKET = { version: 1, acquisitionId: 'none', ttlMs: 60_000 } as const;
export const transfer = feature('transfer', (locks, name) => adopt(locks, { ...NO_TICKET, name }));
export const maxWaiters = feature('max-waiters', (locks, name) => locks.lock(name, { maxWaiters: 1 }));
/** Users do not notice that this feature is absent: `all` takes the members one by one. */
export const many: Need = { ...feature('many'), refused: allIsTakenOneByOne };
export const shared = mode('shared', (locks, name) => locks.readWriteLock(name));
export const permits = mode('permit', (locks, name) => locks.semaphore(name, 2));

/** The fields of a case that needs all of these: it reports the first missing need, and asserts its absence. */
export function needs(...all: readonly Need[]): Pick<ConformanceCase, 'missing' | 'refused'> {
  return {
    missing(capabilities, harness) {
      for (const { missing } of all) {
        const found = missing(capabilities, harness);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    async refused(context) {
      const { capabilities } = await context.backend();
      await all.find(({ missing }) => missing(capabilities, context.harness) !== undefined)?.refused(context);
    },
  };
}

type Request = (locks: LockManager, name: string) => unknown;

function feature(name: BackendFeature, request: Request = () => {}): Need {
  return {
    missing: ({ features }) =>
      features.includes(name) ? undefined : without(`the feature ${name} is not declared`),
    refused: (context) => coreRefuses(context, request),
  };
}

function mode(kind: LockMode['kind'], request: Request): Need {
  return {
    missing: ({ modes }) => (modes.includes(kind) ? undefined : without(`the mode ${kind} is not declared`)),
    refused: (context) => coreRefuses(context, request),
  };
}

/** Asserts that core refuses a capability that the backend does not declare, whatever the harness makes of core's managers. */
async function coreRefuses(
  context: CaseContext,
  request: Request,
  renewalThread?: RenewalThread,
): Promise<void> {
  const backend = await context.backend();
  try {
    await using locks = createLocks(backend, { renewalThread }) as LockManager;
    await request(locks, context.name());
  } catch (error) {
    if (isLockError(error, 'LOCK_UNSUPPORTED')) return;
    throw error;
  }
  throw new Error('a capability that is not declared was not refused with LOCK_UNSUPPORTED');
}

/** Asserts that another process has another store. */
function processesAreApart(context: CaseContext): Promise<void> {
  const known = apart.get(context.harness) ?? proveApart(context);
  apart.set(context.harness, known);
  return known;
}

/** The proof for each harness: it holds for all cases of a run, and costs a process. */
const apart = new WeakMap<Harness, Promise<void>>();

async function proveApart(context: CaseContext): Promise<void> {
  const name = context.name();
  const mine = await (await context.client()).locks.lock(name).acquire();
  const child = await context.child();
  const theirs = await child.tryAcquire(name);
  if (theirs === undefined)
    throw new Error('reach is declared as one process, but another process was excluded');
  await mine.release();
}

/** Asserts that all other processes of the machine share the store, or none does. */
async function oneMachineSharesItsStore(context: CaseContext): Promise<void> {
  const { capabilities } = await context.backend();
  if (capabilities.reach === 'process') return processesAreApart(context);
  const name = context.name();
  const lease = await (await context.client()).locks.lock(name).acquire();
  const theirs = await (await context.child()).tryAcquire(name);
  if (theirs !== undefined) throw new Error('another process of the machine was granted a held lock');
  await lease.release();
}

/** Asserts that inspect shows no waiters. */
async function waitersAreHidden(context: CaseContext): Promise<void> {
  const name = context.name();
  const lease = await (await context.client()).locks.lock(name).acquire();
  const { locks } = await context.client();
  const waiting = locks.lock(name).acquire();
  waiting.catch(() => {});
  await context.sleep(context.timing.slackMs / 4);
  const { waiters } = await locks.inspect(name);
  if (waiters.length > 0) throw new Error('the feature waiters is not declared, but inspect shows waiters');
  await lease.release();
  await (await waiting).release();
}

/** Asserts that a hold outlives its ttl without renewals. */
async function ttlEndsNothing(context: CaseContext): Promise<void> {
  const [holder, other] = [await context.client(), await context.client()];
  for (let round = 1; ; round += 1) {
    const name = context.name(`round ${round}`);
    const lease = await holder.locks.lock(name).acquire({ ttlMs: context.timing.ttlMs, renewal: 'manual' });
    await context.sleep(context.timing.ttlMs + context.timing.slackMs);
    const taken = await other.locks.lock(name).tryAcquire();
    if (taken === undefined) return await lease.release();
    // On a machine that stood still the session itself may have ended, and its holder knows: such a round proves nothing.
    const { aborted, reason } = lease.signal;
    if (round === 3 || !aborted || !isLockError(reason) || reason.reason !== 'session-lost')
      throw new Error('tenure is declared as a session, but a hold ended by its ttl');
    await taken.release();
  }
}

/** Asserts that core starts no thread that could not renew. */
async function threadsAreRefused(context: CaseContext): Promise<void> {
  const { renewalThread } = await import('../src/renewal-thread/index.ts');
  await coreRefuses(context, () => {}, renewalThread(context.harness.module, { maxBlockedMs: 60_000 }));
}

/** Asserts that a renewal by another client leaves the hold as it is. */
async function anotherLeavesTheHold(context: CaseContext): Promise<void> {
  const name = context.name();
  const [backend, another] = [await context.backend(), await context.backend()];
  const grant = await grab(backend, name, 60_000);
  const item = { grant: copiedGrant(grant), ttlMs: 60_000 };
  await another.renew([item], openCall);
  // What the other client left behind comes to nothing either.
  await context.sleep(context.timing.slackMs / 4);
  const [own] = await backend.renew([{ ...item, grant }], openCall);
  const ids = await holdersOf(another, name);
  if (own?.status !== 'held' || ids.join() !== grant.request.acquisitionId)
    throw new SafetyViolation('a renewal by another client ended a hold');
  if ((await backend.release(grant, openCall)) === 'not-held') throw new Error('the hold was not released');
}

/** Asserts that a client that has just come does not get the lock of a dead holder. */
async function newcomersAreRefused(context: CaseContext): Promise<void> {
  const name = context.name();
  const { ttlMs, slackMs } = context.timing;
  await grab(await context.backend(), name, ttlMs);
  await context.sleep(ttlMs + context.stepMs + slackMs);
  const lease = await (await context.client()).locks.lock(name).tryAcquire();
  if (lease !== undefined)
    throw new Error(
      'the expiry is declared as observed, and a client that has just come got the lock of a dead holder',
    );
}

async function allIsTakenOneByOne(context: CaseContext): Promise<void> {
  const calls = new CallCounter();
  const { locks } = await context.client({ wrap: calls.wrap });
  const lease = await locks.all([locks.lock(context.name()), locks.lock(context.name())]).acquire();
  if (calls.of('attempt') !== 2) throw new Error('two members were not taken by two attempts');
  await lease.release();
}

/** Asserts that a backend which is not of order `cohort` declares no bound of one. */
async function noBoundIsDeclared(context: CaseContext): Promise<void> {
  const { order, cohort } = (await context.backend()).capabilities;
  if (cohort !== undefined) throw new Error(`the order ${order} is declared with the bound of cohorts`);
}

/** Asserts that each waiter is granted, in any order. */
async function everyWaiterIsGranted(context: CaseContext): Promise<void> {
  const name = context.name();
  const holder = await (await context.client()).locks.lock(name).acquire();
  const waitMs = 20 * context.timing.slackMs;
  const all = await Promise.all([1, 2, 3].map(() => startWaiting(context, name, { waitMs })));
  await holder.release();
  await Promise.all(all.map(async ({ lease }) => (await lease).release()));
}

/** For a case whose hook is declared as `'none'`: two clients exclude each other. */
export async function clientsShareTheStore(context: CaseContext): Promise<void> {
  const [one, other] = [await context.client(), await context.client()];
  const name = context.name();
  const lease = await one.locks.lock(name).acquire();
  const theirs = await other.locks.lock(name).tryAcquire();
  if (theirs !== undefined) throw new Error('two clients of one store hold one lock');
  await lease.release();
}
