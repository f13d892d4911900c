import type { Contention } from '../compare/burst.ts';
import type { CompareSettings } from '../compare/comparison.ts';
import type { LoopRow } from '../compare/uncontended.ts';
import type { SettingsOptions } from './command.ts';

/** The same workload for every backend: one lock again and again, and 32 waiters for one lock at once. */
export const sequential: LoopRow = {
  id: 'sequential',
  title: 'Sequential: one lock again and again',
  lanes: 1,
};

export const contentions: readonly Contention[] = [
  { id: 'waiters', title: '32 waiters of one process', processes: 1, waitersEach: 32, turns: 1 },
  { id: 'processes', title: '4 processes × 8 waiters', processes: 4, waitersEach: 8, turns: 1 },
];

export interface StoreSettings extends CompareSettings {
  readonly quick: boolean;
  readonly waitingMs: number;
  readonly tripsMs: number;
  readonly kills: number;
  readonly killedTtlMs: number;
}

const full: StoreSettings = {
  quick: false,
  rounds: 5,
  warmUpMs: 5_000,
  warmUpBurstsMs: 2_000,
  leadInMs: 150,
  blockMs: 250,
  burstsMs: 500,
  burstLimitMs: 2_000,
  turnsLimitMs: 2_000,
  sectionMs: 1,
  waitingMs: 4_000,
  tripsMs: 900,
  kills: 200,
  killedTtlMs: 2_500,
};

const quick: StoreSettings = {
  ...full,
  quick: true,
  rounds: 2,
  warmUpMs: 250,
  warmUpBurstsMs: 150,
  leadInMs: 30,
  blockMs: 100,
  burstsMs: 150,
  burstLimitMs: 1_500,
  waitingMs: 2_000,
  tripsMs: 500,
  kills: 20,
};

export function settingsFor(options: SettingsOptions): StoreSettings {
  const base = options.quick ? quick : full;
  return options.rounds === undefined ? base : { ...base, rounds: options.rounds };
}
