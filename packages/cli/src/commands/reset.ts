import type { FencedLease, LockManager } from '@locks/core';
import { resetSlot } from '@locks/once';
import { type OptionValues, textOf } from '../command-line.ts';
import { readDuration } from '../duration.ts';
import { EXIT } from '../exit-codes.ts';
import { shown } from '../foreign-text.ts';
import type { Store } from '../open-store.ts';
import { repeatSlots } from '../slots/repeat-slots.ts';
import { UsageError } from '../usage-error.ts';
import type { Write } from './look.ts';
import { leftOf } from './name-and-command.ts';
import { timeOf } from './time-of.ts';

export interface ResetPlan {
  readonly name: string;
  readonly waitMs: number;
  /** The start of the wait, before the store was opened: a time of `performance.now()`. */
  readonly startedAt: number;
  readonly label: string | undefined;
}

/** The options of `locks once` that go with `--reset`. */
const ALLOWED = new Set(['reset', 'wait', 'label', 'url', 'prefix']);

/** @throws UsageError */
export function readResetPlan(
  operands: readonly string[],
  command: readonly string[],
  values: OptionValues,
): ResetPlan {
  const [name, ...more] = operands;
  if (name === undefined) throw new UsageError('once --reset: the name of the work is missing');
  if (more.length > 0 || command.length > 0)
    throw new UsageError('once --reset takes one name, and runs no command');
  for (const [option, value] of Object.entries(values)) {
    if (value !== false && !ALLOWED.has(option)) throw new UsageError(`once --reset takes no --${option}`);
  }
  const wait = textOf(values, 'wait');
  const waitMs = wait === undefined ? 0 : readDuration('--wait', wait);
  return { name, waitMs, startedAt: performance.now(), label: textOf(values, 'label') };
}

/** Forgets the recorded slot of a name. Gives the exit code. */
export async function reset(store: Store, plan: ResetPlan, write: Write): Promise<number> {
  const { name, label } = plan;
  const slots = repeatSlots(await store.openSlots());
  // `resetSlot` itself refuses a store without tokens.
  const locks = store.locks as LockManager as LockManager<FencedLease>;
  const waitMs = leftOf(plan.waitMs, plan.startedAt);
  const forgotten = await resetSlot(locks, name, { slots, label, waitMs });
  if (forgotten === undefined) {
    write(`${shown(name)}: nothing is recorded\n`);
    return EXIT.nothing;
  }
  const { slot, label: by, at } = forgotten;
  write(
    `${shown(name)}: slot ${shown(slot)}, recorded by ${shown(by)} at ${timeOf(at)}, is forgotten: the next call runs\n`,
  );
  return EXIT.ok;
}
