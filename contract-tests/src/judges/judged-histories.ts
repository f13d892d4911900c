import { globSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkHistory, type HistoryEvent, type HistoryExpectation, readHistory } from '@locks/history';
import {
  brokenHistories,
  keptHistories,
  unjudgedHistories,
} from '../../../packages/history/test/planted-histories.ts';
import { randomHistory, randomNumbers } from '../../../packages/history/test/random-history.ts';
import type { NemesisName } from '../lab/nemeses.ts';
import { SeededRandom } from '../lab/random.ts';
import { runLab } from '../lab/run-lab.ts';
import { plantings } from './plantings.ts';

/** A history for two judges, of one lock or of several. */
export interface JudgedHistory {
  /** The row of the table. */
  readonly row: string;
  readonly title: string;
  readonly events: readonly HistoryEvent[];
  readonly expectations: readonly HistoryExpectation[];
  /** What both judges must say of every lock; `unseen`: `@locks/history` clean, and Porcupine broken. Absent: the same. */
  readonly verdict?: 'clean' | 'broken' | 'unseen';
}

/** Small ones that were written by hand: each kind of violation, and what a lock may do. */
export function plantedHistories(): JudgedHistory[] {
  const broken = brokenHistories.map(({ title, history, expectations = [], kinds }) => ({
    ...{ row: `planted: ${kinds.join(', ')}`, title, events: history.events, expectations },
    verdict: 'broken' as const,
  }));
  const kept = keptHistories.map(({ title, history, expectations = [] }) => ({
    ...{ row: 'planted: none', title, events: history.events, expectations },
    verdict: 'clean' as const,
  }));
  const unseen = unjudgedHistories.map(({ title, history }) => ({
    ...{ row: 'planted: seen by Porcupine alone', title, events: history.events, expectations: [] },
    verdict: 'unseen' as const,
  }));
  return [...broken, ...kept, ...unseen];
}

/** Those of the differential test of `@locks/history`: of each seed one, on a lock of its own. */
export function randomHistories(first: number, count: number): JudgedHistory[] {
  const byExpectations = new Map<string, { expectations: HistoryExpectation[]; events: HistoryEvent[] }>();
  for (let seed = first; seed < first + count; seed += 1) {
    const random = randomNumbers(seed);
    const expectations: HistoryExpectation[] = [];
    if (random() < 0.3) expectations.push('fenced');
    if (random() < 0.7) expectations.push('reentrant');
    const key = expectations.join();
    const group = byExpectations.get(key) ?? { expectations, events: [] };
    byExpectations.set(key, group);
    for (const { process, ...event } of randomHistory(random))
      group.events.push({
        ...{ ...event, process: `${seed} ${process}` },
        ...(event.operation !== 'crash' && { resource: `seed ${seed}` }),
      });
  }
  return [...byExpectations.values()].map((group) => ({ row: 'random', title: 'random', ...group }));
}

/** What the lab records on a real store; each workload is a history. A clock that is set forward lets two hold: docs/guarantees.md. */
export async function recordedHistories(
  backend: string,
  nemesis: NemesisName,
  seconds: number,
  seed: number,
): Promise<JudgedHistory[] | string> {
  const folder = await mkdtemp(join(tmpdir(), 'locks-judges-'));
  try {
    let missing = 'it does not apply';
    const random = new SeededRandom(seed);
    const onMissing = (sentence: string) => (missing = sentence);
    const results = await runLab({ backend, nemesis, seconds, random, histories: folder, onMissing });
    if (results === undefined) return missing;
    return results.map(({ workload }) => {
      const files = globSync(`${backend}/${nemesis}/${workload} *.jsonl`, { cwd: folder });
      const events = [...readHistory(...files.sort().map((file) => join(folder, file)))];
      return {
        ...{ row: `recorded: ${backend}, ${nemesis}`, title: workload, events },
        expectations: ['fenced'] as const,
        ...(nemesis !== 'clock-forward' && { verdict: 'clean' as const }),
      };
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Recorded histories that are clean, with a violation of each kind planted between the calls of one lock. */
export function brokenAfterwards(recorded: readonly JudgedHistory[], seed: number): JudgedHistory[] {
  const random = new SeededRandom(seed);
  return recorded
    .filter(({ events, expectations }) => checkHistory(events, ...expectations).violations.length === 0)
    .flatMap(({ title, events, expectations }) =>
      Object.entries(plantings).flatMap(([what, plant]) => {
        const lock = random.one(events.flatMap(({ resource }) => resource ?? []));
        const of = events.filter(({ resource, operation }) => resource === lock || operation === 'crash');
        const planted = plant(of, random);
        if (planted === undefined) return [];
        const where = { row: `recorded, with ${what}`, title, expectations };
        return [{ ...where, events: planted, verdict: 'broken' as const }];
      }),
    );
}
