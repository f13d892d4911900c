import type { Contention } from '../../compare/burst.ts';
import type { Comparison } from '../../compare/comparison.ts';
import { compareContended } from '../../compare/contended.ts';
import { type KilledResult, measureKilled } from '../../compare/killed.ts';
import { compareUncontended, type LoopRow } from '../../compare/uncontended.ts';
import { measureWaiting, type WaitingResult } from '../../compare/waiting.ts';
import { describeMachine, versionsOf } from '../../measure/machine.ts';
import { reportHead } from '../../report/head.ts';
import type { Selection } from '../command.ts';
import { type RedisTestbed, openRedisStage } from './redis-testbed.ts';
import { measureCore } from './core-cost.ts';
import { measureMemory } from './memory.ts';
import { measureRenewal } from './renewal.ts';
import type { CoreResult, MemoryResult, RenewalResult, Report } from './result.ts';
import type { Settings } from './settings.ts';

export const rowIds = [
  'sequential',
  'keys',
  'waiters',
  'processes',
  'turns',
  'core',
  'renewal',
  'waiting',
  'kill',
  'memory',
] as const;
export type RowId = (typeof rowIds)[number];

const loops: readonly (LoopRow & { id: RowId })[] = [
  { id: 'sequential', title: 'Sequential: one lock again and again', lanes: 1 },
  { id: 'keys', title: '64 keys at once', lanes: 64 },
];
const contentions: readonly (Contention & { id: RowId })[] = [
  { id: 'waiters', title: '32 waiters of one process', processes: 1, waitersEach: 32, turns: 1 },
  { id: 'processes', title: '4 processes × 8 waiters', processes: 4, waitersEach: 8, turns: 1 },
  { id: 'turns', title: '4 processes × 8 waiters, each 10 times', processes: 4, waitersEach: 8, turns: 10 },
];

/** Measures the rows asked for, one after the other. */
export async function measureRedis(
  settings: Settings,
  selection: Selection,
  say: (text: string) => void,
): Promise<Report> {
  const machine = describeMachine();
  await using testbed = await openRedisStage();
  say(testbed.placement);
  const started = performance.now();
  const report = (row: string): void =>
    say(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${row}`);
  const comparisons = await compareAll(testbed, settings, selection, report);
  const others = await measureOurs(testbed, settings, selection, report);
  report('done');
  const packages = selection.contenders.flatMap((contender) => contender.packages);
  return {
    ...reportHead('redis', machine, testbed.placement, testbed.server.versions, versionsOf(packages)),
    settings,
    comparisons,
    ...others,
  };
}

async function compareAll(
  testbed: RedisTestbed,
  settings: Settings,
  { rows, contenders }: Selection,
  report: (row: string) => void,
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const row of loops) {
    if (!rows.has(row.id)) continue;
    report(row.id);
    comparisons.push(await compareUncontended(testbed, contenders, settings, row));
  }
  for (const contention of contentions) {
    if (!rows.has(contention.id)) continue;
    report(contention.id);
    comparisons.push(await compareContended(testbed, contenders, settings, contention));
  }
  return comparisons;
}

interface Others {
  core?: CoreResult;
  renewal?: RenewalResult[];
  waiting?: WaitingResult[];
  killed?: KilledResult[];
  memory?: MemoryResult[];
}

/** The rows about our own packages alone. */
async function measureOurs(
  testbed: RedisTestbed,
  settings: Settings,
  { rows, contenders }: Selection,
  report: (row: string) => void,
): Promise<Others> {
  const others: Others = {};
  if (rows.has('core')) {
    report('core');
    others.core = await measureCore(testbed, settings);
  }
  for (const ours of contenders.filter(({ kind }) => kind === 'ours')) {
    if (rows.has('renewal')) {
      report(`renewal ${ours.name}`);
      (others.renewal ??= []).push(await measureRenewal(testbed, ours, settings));
    }
    for (const locks of rows.has('waiting') ? [settings.waiters, 1] : []) {
      report(`waiting ${ours.name}, ${locks} locks`);
      (others.waiting ??= []).push(await measureWaiting(testbed, ours, { ...settings, locks }));
    }
    if (rows.has('kill')) {
      report(`kill ${ours.name}`);
      (others.killed ??= []).push(await measureKilled(testbed, ours, settings));
    }
    if (rows.has('memory')) {
      report(`memory ${ours.name}`);
      (others.memory ??= []).push(await measureMemory(testbed, ours, settings));
    }
  }
  return others;
}
