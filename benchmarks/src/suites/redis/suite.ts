import type { Contention } from '../../compare/burst.ts';
import type { Comparison } from '../../compare/comparison.ts';
import { compareContended } from '../../compare/contended.ts';
import { compareUncontended, type LoopRow } from '../../compare/uncontended.ts';
import { measureWaiting, type WaitingResult } from '../../compare/waiting.ts';
import type { Contender } from '../../contenders/contender.ts';
import { describeMachine, versionsOf } from '../../measure/machine.ts';
import type { Selection } from '../command.ts';
import { type RedisStage, openRedisStage } from './redis-stage.ts';
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
  await using stage = await openRedisStage();
  say(stage.placement);
  const started = performance.now();
  const tell = (row: string): void =>
    say(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${row}`);
  const comparisons = await compareAll(stage, settings, selection, tell);
  const others = await measureOurs(stage, settings, selection, tell);
  tell('done');
  return {
    schema: 1,
    suite: 'redis',
    date: new Date().toISOString(),
    machine,
    placement: stage.placement,
    pinned: stage.pinning !== undefined,
    versions: versions(stage, selection.contenders),
    settings,
    comparisons,
    ...others,
  };
}

async function compareAll(
  stage: RedisStage,
  settings: Settings,
  { rows, contenders }: Selection,
  tell: (row: string) => void,
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const row of loops) {
    if (!rows.has(row.id)) continue;
    tell(row.id);
    comparisons.push(await compareUncontended(stage, contenders, settings, row));
  }
  for (const contention of contentions) {
    if (!rows.has(contention.id)) continue;
    tell(contention.id);
    comparisons.push(await compareContended(stage, contenders, settings, contention));
  }
  return comparisons;
}

interface Others {
  core?: CoreResult;
  renewal?: RenewalResult[];
  waiting?: WaitingResult[];
  memory?: MemoryResult[];
}

/** The rows that are about us alone. */
async function measureOurs(
  stage: RedisStage,
  settings: Settings,
  { rows, contenders }: Selection,
  tell: (row: string) => void,
): Promise<Others> {
  const others: Others = {};
  if (rows.has('core')) {
    tell('core');
    others.core = await measureCore(stage, settings);
  }
  for (const ours of contenders.filter(({ kind }) => kind === 'ours')) {
    if (rows.has('renewal')) {
      tell(`renewal ${ours.name}`);
      (others.renewal ??= []).push(await measureRenewal(stage, ours, settings));
    }
    for (const locks of rows.has('waiting') ? [settings.waiters, 1] : []) {
      tell(`waiting ${ours.name}, ${locks} locks`);
      (others.waiting ??= []).push(await measureWaiting(stage, ours, { ...settings, locks }));
    }
    if (rows.has('memory')) {
      tell(`memory ${ours.name}`);
      (others.memory ??= []).push(await measureMemory(stage, ours, settings));
    }
  }
  return others;
}

function versions({ server }: RedisStage, contenders: readonly Contender[]): Record<string, string> {
  const packages = contenders.flatMap((contender) => contender.packages);
  return { node: process.versions.node, ...server.versions, ...versionsOf(packages) };
}
