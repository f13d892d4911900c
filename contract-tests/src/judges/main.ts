/**
 * Two judges of histories, which must agree: `@locks/history`, and Porcupine with models after those of Jepsen. They judge histories that
 * were planted, made at random, and recorded on real stores. Prints both verdicts as a table. Exit code 1 where they differ. Needs Go. The argument is a seed.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkHistory, type HistoryViolation, historyToEdn } from '@locks/history';
import { NEMESES } from '../lab/nemeses.ts';
import { markdownTable } from '../markdown-table.ts';
import {
  brokenAfterwards,
  type JudgedHistory,
  plantedHistories,
  randomHistories,
  recordedHistories,
} from './judged-histories.ts';
import { buildPorcupine, judgeByPorcupine, type PorcupineVerdict } from './porcupine.ts';

const RANDOM = 20_000;
/** A backend, a nemesis, and for how many seconds. */
const RECORDED = [
  ['sqlite', 'pause', 5],
  ['sqlite', 'kill', 3],
  ['redis-ioredis', 'pause', 3],
  ['redis-ioredis', 'kill', 3],
  ['redis-ioredis', 'cut', 3],
  ['redis-ioredis', 'clock-forward', 8],
] as const;
const MOST_NAMES = 4;

/** What both judges say of the locks of a row. */
interface Row {
  locks: number;
  calls: number;
  broken: number;
  readonly kinds: Set<string>;
  readonly models: Set<string>;
}

const seed = Number(process.argv[2] ?? 1 + (Date.now() % 1_000_000_000));
const problems: string[] = [];
const rows = new Map<string, Row>();

await buildPorcupine();
const histories = [...plantedHistories(), ...randomHistories(seed, RANDOM)];
for (const [backend, nemesis, seconds] of RECORDED) {
  const recorded = await recordedHistories(backend, nemesis, seconds, seed + NEMESES.indexOf(nemesis));
  if (typeof recorded === 'string') console.log(`not recorded: ${backend}, ${nemesis}: ${recorded}`);
  else histories.push(...recorded, ...brokenAfterwards(recorded, seed));
}
await judgeAll();
console.log(tableOfRows().join('\n'));
if (problems.length > 0) console.log(`\nseed ${seed}:\n${problems.join('\n')}`);
process.exitCode = problems.length > 0 ? 1 : 0;

async function judgeAll(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'locks-judges-'));
  try {
    for (const [expectations, batch] of groupsOf(histories, (one) => one.expectations.join(' '))) {
      const files = batch.map((_, index) => join(folder, `${expectations} ${index}.edn`));
      for (const [index, { events }] of batch.entries())
        await writeFile(files[index] as string, [...historyToEdn(events)].join(''));
      const verdicts = await judgeByPorcupine(files, batch[0]?.expectations ?? []);
      const byFile = groupsOf(verdicts, ({ file }) => file);
      for (const [index, history] of batch.entries())
        compare(history, byFile.get(files[index] as string) ?? []);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

function compare(history: JudgedHistory, verdicts: readonly PorcupineVerdict[]): void {
  const { row, title, events, expectations, verdict } = history;
  const { violations } = checkHistory(events, ...expectations);
  const byLock = groupsOf(violations, ({ resource }) => resource);
  for (const one of verdicts) {
    const own = byLock.get(one.lock) ?? [];
    byLock.delete(one.lock);
    count(row, one, own);
    const ofOwn = own.length > 0 ? 'broken' : 'clean';
    const ofPorcupine = { Illegal: 'broken', Ok: 'clean', Unknown: 'undecided' }[one.result];
    const must = verdict ?? ofOwn;
    if (
      must === 'unseen'
        ? ofOwn === 'clean' && ofPorcupine === 'broken'
        : ofOwn === must && ofPorcupine === must
    )
      continue;
    const sentences = own.map(({ kind, sentence }) => ` ${kind}: ${sentence}`).join('');
    problems.push(
      `${row}, ${title}, ${one.lock}: for @locks/history ${ofOwn}${sentences}; for Porcupine ${ofPorcupine}, as a ${one.model}`,
    );
  }
  if (byLock.size > 0 || (verdicts.length === 0 && events.length > 0))
    problems.push(`${row}, ${title}: Porcupine did not judge ${[...byLock.keys()].join(', ') || 'it'}`);
}

function count(name: string, one: PorcupineVerdict, own: readonly HistoryViolation[]): void {
  const row = rows.get(name) ?? { locks: 0, calls: 0, broken: 0, kinds: new Set(), models: new Set() };
  rows.set(name, row);
  row.locks += 1;
  row.calls += one.calls;
  if (own.length > 0) row.broken += 1;
  for (const { kind } of own) row.kinds.add(kind);
  if (one.result !== 'Ok') row.models.add(one.model);
}

function tableOfRows(): string[] {
  const sorted = [...rows].sort(([one], [other]) => one.localeCompare(other));
  return markdownTable(
    ['history', 'locks', 'calls', 'broken', '@locks/history', 'Porcupine refuses it as a'],
    sorted.map(([name, { locks, calls, broken, kinds, models }]) => [
      ...[name, String(locks), String(calls), String(broken)],
      ...[kinds, models].map((names) => cellOf([...names].sort())),
    ]),
  );
}

function cellOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown || '–';
}

function groupsOf<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group === undefined) groups.set(keyOf(one), [one]);
    else group.push(one);
  }
  return groups;
}
