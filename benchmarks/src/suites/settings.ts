import type { CompareSettings } from '../compare/comparison.ts';
import type { RenewalTask } from '../compare/renewal.ts';

/** How long and how often things are measured, and what settles that. */
export interface SettingsOptions {
  readonly quick: boolean;
  readonly rounds: number | undefined;
}

export interface Settings extends CompareSettings, RenewalTask {
  readonly quick: boolean;
  readonly waitingMs: number;
  readonly tripsMs: number;
  readonly kills: number;
  readonly killedTtlMs: number;
  readonly names: number;
  readonly corePairs: number;
}

const full: Settings = {
  quick: false,
  rounds: 3,
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
  leases: 10_000,
  renewalTtlMs: 6_000,
  renewalWatchMs: 7_000,
  names: 1_000_000,
  corePairs: 200_000,
};

const quick: Settings = {
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
  renewalTtlMs: 3_000,
  renewalWatchMs: 3_500,
  names: 100_000,
  corePairs: 50_000,
};

export function settingsFor(options: SettingsOptions): Settings {
  const base = options.quick ? quick : full;
  return options.rounds === undefined ? base : { ...base, rounds: options.rounds };
}
