import type { Comparison } from '../../compare/comparison.ts';
import { compareContended } from '../../compare/contended.ts';
import { type KilledResult, measureKilled } from '../../compare/killed.ts';
import { measureTrips, type TripsResult } from '../../compare/trips.ts';
import { compareUncontended } from '../../compare/uncontended.ts';
import { measureWaiting, type WaitingResult } from '../../compare/waiting.ts';
import { openTestbed, type Testbed } from '../../conduct/testbed.ts';
import type { Contender } from '../../contenders/contender.ts';
import { describeMachine, versionsOf } from '../../measure/machine.ts';
import { Progress } from '../../measure/progress.ts';
import { reportHead, type ReportHead } from '../../report/head.ts';
import type { Store } from '../../stores/store.ts';
import type { Selection } from '../command.ts';
import { contentions, sequential, type StoreSettings } from '../workload.ts';

export const rowIds = ['sequential', 'waiters', 'processes', 'trips', 'waiting', 'kill'] as const;

export interface StoreReport extends ReportHead {
  readonly suite: Store['id'];
  readonly counting: string;
  readonly settings: StoreSettings;
  readonly comparisons: readonly Comparison[];
  readonly trips?: readonly TripsResult[];
  readonly waiting?: readonly WaitingResult[];
  readonly killed?: readonly KilledResult[];
}

/** The first row: a lock is held, and nobody waits. */
const waits = [
  { waiters: 0, locks: 1 },
  { waiters: 32, locks: 1 },
  { waiters: 1_000, locks: 1 },
  { waiters: 1_000, locks: 1_000 },
];

/** So long that no lease is renewed meanwhile. */
const HELD_MS = 180_000;

/** Measures the rows asked for, one after the other, on a private server. */
export async function measureStore(
  store: Store,
  settings: StoreSettings,
  { rows, contenders }: Selection,
  say: (text: string) => void,
): Promise<StoreReport> {
  const machine = describeMachine();
  const progress = new Progress(say);
  await using testbed = await openTestbed(store.start);
  say(testbed.placement);
  const comparisons = await compareAll(testbed, settings, { rows, contenders }, progress);
  const trips = rows.has('trips') ? await measureAllTrips(testbed, settings, contenders, progress) : [];
  const ours = contenders.filter(({ kind }) => kind === 'ours');
  const waiting = rows.has('waiting') ? await measureWaits(testbed, settings, ours, progress) : [];
  const killed = rows.has('kill') ? await measureKills(testbed, settings, ours, progress) : [];
  progress.report('done');
  const packages = contenders.flatMap((contender) => contender.packages);
  return {
    ...reportHead(store.id, machine, testbed.placement, testbed.server.versions, versionsOf(packages)),
    counting: store.counting,
    settings,
    failures: progress.failures,
    comparisons,
    ...(trips.length > 0 && { trips }),
    ...(waiting.length > 0 && { waiting }),
    ...(killed.length > 0 && { killed }),
  };
}

/** The workload that is the same for all backends. */
export async function compareAll(
  testbed: Testbed,
  settings: StoreSettings,
  { rows, contenders }: Selection,
  progress: Progress,
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  const add = async (title: string, compare: () => Promise<Comparison>): Promise<void> => {
    const comparison = await progress.part(title, compare);
    if (comparison !== undefined) comparisons.push(comparison);
    // A part that failed may have left a waiter behind.
    else for (const contender of contenders) await testbed.endWorkers(contender);
  };
  if (rows.has(sequential.id)) {
    await add(sequential.id, () => compareUncontended(testbed, contenders, settings, sequential));
  }
  for (const contention of contentions) {
    if (!rows.has(contention.id)) continue;
    await add(contention.id, () => compareContended(testbed, contenders, settings, contention));
  }
  return comparisons;
}

async function measureAllTrips(
  testbed: Testbed,
  { tripsMs }: StoreSettings,
  contenders: readonly Contender[],
  progress: Progress,
): Promise<TripsResult[]> {
  const results: TripsResult[] = [];
  for (const contender of contenders) {
    if (contender.kind === 'peer') continue;
    const result = await progress.part(`trips ${contender.name}`, () =>
      measureTrips(testbed, contender, { contended: true, forMs: tripsMs }),
    );
    if (result !== undefined) results.push(result);
  }
  return results;
}

async function measureWaits(
  testbed: Testbed,
  { waitingMs }: StoreSettings,
  ours: readonly Contender[],
  progress: Progress,
): Promise<WaitingResult[]> {
  // Only the measured processes send requests meanwhile.
  for (const contender of ours) await testbed.endWorkers(contender);
  const results: WaitingResult[] = [];
  for (const contender of ours) {
    for (const { waiters, locks } of waits) {
      const what = `waiting ${contender.name}, ${waiters} waiters, ${locks} lock(s)`;
      const result = await progress.part(what, () =>
        measureWaiting(testbed, contender, { waiters, locks, waitingMs, ttlMs: HELD_MS }),
      );
      if (result !== undefined) results.push(result);
    }
  }
  return results;
}

async function measureKills(
  testbed: Testbed,
  settings: StoreSettings,
  ours: readonly Contender[],
  progress: Progress,
): Promise<KilledResult[]> {
  const results: KilledResult[] = [];
  for (const contender of ours) {
    await testbed.endWorkers(contender);
    const result = await progress.part(`kill ${contender.name}`, () =>
      measureKilled(testbed, contender, settings),
    );
    if (result !== undefined) results.push(result);
  }
  return results;
}
