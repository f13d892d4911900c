import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../contenders/contender.ts';
import type { Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import { quantile } from '../measure/quantiles.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';

export interface KilledResult {
  readonly contender: string;
  readonly kills: number;
  /** From the end of the killed holder's lease in the store to the next entry, in milliseconds. */
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
}

export interface KilledTask {
  readonly kills: number;
  readonly killedTtlMs: number;
}

const WAITING_PROCESSES = 3;
/** One killed process holds so many locks. */
const LOCKS_AT_ONCE = 10;

/** How soon after the end of a lease the next one enters, when the holder was killed: three other processes wait. */
export async function measureKilled(
  testbed: Testbed,
  ours: Contender,
  { kills, killedTtlMs }: KilledTask,
): Promise<KilledResult> {
  const started: Worker[] = [];
  const open = async (): Promise<Worker> => {
    const worker = testbed.startWorker();
    started.push(worker);
    await worker.call.openLocks(ours.store, ours.name, testbed.url, killedTtlMs);
    return worker;
  };
  try {
    const waiting: Worker[] = [];
    while (waiting.length < WAITING_PROCESSES) waiting.push(await open());
    const gaps: number[] = [];
    while (gaps.length < kills) {
      const names = Array.from(
        { length: LOCKS_AT_ONCE },
        (_, index) => `bench:killed:${ours.name}:${gaps.length + index}`,
      );
      gaps.push(...(await killOnce(testbed, await open(), waiting, names, killedTtlMs)));
    }
    const [p50Ms, p90Ms, p99Ms] = [0.5, 0.9, 0.99].map((q) => quantile(gaps, q)) as [number, number, number];
    return { contender: ours.name, kills: gaps.length, p50Ms, p90Ms, p99Ms };
  } finally {
    for (const worker of started) await testbed.end(worker);
  }
}

async function killOnce(
  testbed: Testbed,
  holder: Worker,
  waiting: readonly Worker[],
  names: readonly string[],
  ttlMs: number,
): Promise<number[]> {
  const [first] = waiting as [Worker];
  await holder.call.holdAll(names);
  const entered = Promise.all(waiting.map(({ call }) => call.enterAll(names)));
  entered.catch(() => undefined);
  await first.call.untilWaiting(names, waiting.length);
  // At any moment between two renewals.
  await delay(Math.random() * ttlMs);
  await testbed.end(holder);
  const ends = await first.call.endsOf(names);
  const entries = await entered;
  return names.map((_, index) => {
    const next = Math.min(...entries.map((times) => times[index] as number));
    return next - (ends[index] as number);
  });
}

export function killedSection(killed: readonly KilledResult[]): Section {
  const title =
    'After a killed holder: from the end of its lease in the store to the next entry, three processes wait';
  return {
    title,
    chart: {
      kind: 'bars',
      id: 'kill',
      title,
      unit: 'p50 ms',
      better: 'less',
      digits: 1,
      bars: killed.map(({ contender, p50Ms }) => ({ name: contender, ours: true, median: p50Ms })),
    },
    table: tableOf(killed, [
      ['', ({ contender }) => contender],
      ['kills', ({ kills }) => whole(kills)],
      ['p50 ms', ({ p50Ms }) => p50Ms.toFixed(1)],
      ['p90 ms', ({ p90Ms }) => p90Ms.toFixed(1)],
      ['p99 ms', ({ p99Ms }) => p99Ms.toFixed(1)],
    ]),
    note: 'Where a lock ends with a session, which has no end that the store tells, counted from the kill.',
  };
}
