import {
  type ConformanceCase,
  type Missing,
  forceReleaseIsRefused,
  listIsRefused,
  needsFeature,
  needsFifo,
  needsFencing,
  needsLeaseTenure,
  needsProcesses,
  needsWaiters,
  noTokenIsGiven,
  processesAreApart,
  refusesAsUnsupported,
  ttlEndsNothing,
  waitersAreHidden,
  without,
} from './case.ts';
import type { BackendCapabilities, LockMode } from '../backend/types.ts';
import type { LockManager } from '../create-locks.ts';
import { Traffic } from './around-calls.ts';
import type { Stage } from './stage.ts';
import { startWaiting } from './waiter.ts';

/** A need of a case, and what asserts its absence. */
export interface Need {
  readonly missing: NonNullable<ConformanceCase['missing']>;
  readonly refused: (stage: Stage) => Promise<void>;
}

export const leaseTenure: Need = { missing: needsLeaseTenure, refused: ttlEndsNothing };
export const processes: Need = { missing: needsProcesses, refused: processesAreApart };
export const network: Need = { missing: needsNetwork, refused: oneMachineSharesItsStore };
export const fencing: Need = { missing: needsFencing, refused: noTokenIsGiven };
export const forceRelease: Need = { missing: needsFeature('force-release'), refused: forceReleaseIsRefused };
export const list: Need = { missing: needsFeature('list'), refused: listIsRefused };
export const waiters: Need = { missing: needsWaiters, refused: waitersAreHidden };
export const shared: Need = {
  missing: needsMode('shared'),
  refused: refusal((locks, name) => locks.readWriteLock(name)),
};
export const permits: Need = {
  missing: needsMode('permit'),
  refused: refusal((locks, name) => locks.semaphore(name, 2)),
};
export const steal: Need = {
  missing: needsFeature('steal'),
  refused: refusal((locks, name) => locks.lock(name).acquire({ steal: true })),
};
/** What is absent is not noticed: `all` takes the members one by one. */
export const many: Need = { missing: needsFeature('many'), refused: allIsTakenOneByOne };
export const fifo: Need = { missing: needsFifo, refused: everybodyGetsIn };

function needsNetwork({ reach }: BackendCapabilities): Missing | undefined {
  return reach === 'network' ? undefined : without('all clients are on one machine, and share its clocks');
}

/** The absence of `network`: other processes of the machine see the store, or none does. */
async function oneMachineSharesItsStore(stage: Stage): Promise<void> {
  const { capabilities } = await stage.backend();
  if (capabilities.reach === 'process') return processesAreApart(stage);
  const name = stage.name();
  const lease = await (await stage.client()).locks.lock(name).acquire();
  const theirs = await (await stage.child()).tryAcquire(name);
  if (theirs !== undefined) throw new Error('another process of the machine got what is held');
  await lease.release();
}

function needsMode(kind: LockMode['kind']): Need['missing'] {
  return ({ modes }) => (modes.includes(kind) ? undefined : without(`the mode ${kind} is not declared`));
}

/** Core refuses what the backend does not declare. */
function refusal(ask: (locks: LockManager, name: string) => unknown): Need['refused'] {
  return async (stage) => {
    const { locks } = await stage.client();
    await refusesAsUnsupported(async () => ask(locks, stage.name()));
  };
}

async function allIsTakenOneByOne(stage: Stage): Promise<void> {
  const traffic = new Traffic();
  const { locks } = await stage.client({ wrap: traffic.wrap });
  const lease = await locks.all([locks.lock(stage.name()), locks.lock(stage.name())]).acquire();
  if (traffic.of('attempt') !== 2) throw new Error('two members were not taken by two attempts');
  await lease.release();
}

/** The absence of `fifo`: there is no order to keep, but whoever waits gets in. */
async function everybodyGetsIn(stage: Stage): Promise<void> {
  const name = stage.name();
  const holder = await (await stage.client()).locks.lock(name).acquire();
  const waitMs = 20 * stage.timing.slackMs;
  const all = await Promise.all([1, 2, 3].map(() => startWaiting(stage, name, { waitMs })));
  await holder.release();
  await Promise.all(all.map(async ({ lease }) => (await lease).release()));
}

/** What a case says that needs all of these: it is missing what the first unmet one says, and asserts its absence. */
export function needs(...all: readonly Need[]): Pick<ConformanceCase, 'missing' | 'refused'> {
  return {
    missing(capabilities, harness) {
      for (const { missing } of all) {
        const found = missing(capabilities, harness);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    async refused(stage) {
      const { capabilities } = await stage.backend();
      await all.find(({ missing }) => missing(capabilities, stage.harness) !== undefined)?.refused(stage);
    },
  };
}
