import {
  type ConformanceCase,
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
  ttlEndsNothing,
  waitersAreHidden,
} from './case.ts';
import type { Stage } from './stage.ts';
import { startWaiting } from './waiter.ts';

/** A need of a case, and what asserts its absence. */
export interface Need {
  readonly missing: NonNullable<ConformanceCase['missing']>;
  readonly refused: (stage: Stage) => Promise<void>;
}

export const leaseTenure: Need = { missing: needsLeaseTenure, refused: ttlEndsNothing };
export const processes: Need = { missing: needsProcesses, refused: processesAreApart };
export const fencing: Need = { missing: needsFencing, refused: noTokenIsGiven };
export const forceRelease: Need = { missing: needsFeature('force-release'), refused: forceReleaseIsRefused };
export const list: Need = { missing: needsFeature('list'), refused: listIsRefused };
export const waiters: Need = { missing: needsWaiters, refused: waitersAreHidden };
export const fifo: Need = { missing: needsFifo, refused: everybodyGetsIn };

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
