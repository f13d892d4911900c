import type { CompareSettings } from '../../compare/comparison.ts';

/** How long and how often things are measured. */
export interface Settings extends CompareSettings {
  readonly quick: boolean;
  readonly leases: number;
  readonly renewalTtlMs: number;
  readonly renewalWatchMs: number;
  readonly waiters: number;
  readonly waitingMs: number;
  readonly kills: number;
  readonly killedTtlMs: number;
  readonly names: number;
  readonly corePairs: number;
}

const full: Settings = {
  quick: false,
  rounds: 5,
  warmUpMs: 5_000,
  warmUpBurstsMs: 2_000,
  leadInMs: 150,
  blockMs: 150,
  burstsMs: 500,
  burstLimitMs: 1_200,
  turnsLimitMs: 2_000,
  sectionMs: 1,
  leases: 10_000,
  renewalTtlMs: 6_000,
  renewalWatchMs: 7_000,
  waiters: 1_000,
  waitingMs: 10_000,
  kills: 200,
  killedTtlMs: 2_500,
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
  blockMs: 80,
  burstsMs: 150,
  burstLimitMs: 600,
  turnsLimitMs: 1_200,
  renewalTtlMs: 3_000,
  renewalWatchMs: 3_500,
  waitingMs: 3_000,
  kills: 20,
  names: 100_000,
  corePairs: 50_000,
};

export function settingsFor(options: {
  readonly quick: boolean;
  readonly rounds: number | undefined;
}): Settings {
  const base = options.quick ? quick : full;
  return options.rounds === undefined ? base : { ...base, rounds: options.rounds };
}
