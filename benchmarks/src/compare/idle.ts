import { setTimeout as delay } from 'node:timers/promises';
import type { Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import type { Contender } from '../contenders/contender.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';

/** So many processes wait for one lock that another one holds. */
export interface IdleTask {
  readonly processes: number;
  readonly waitersEach: number;
  readonly waitingMs: number;
}

/** What waiting costs the processes that wait, all together. */
export interface IdleResult extends IdleTask {
  readonly contender: string;
  /** Processor time, as a part of one core. */
  readonly cores: number;
  /** How often their threads went to sleep, in a second. */
  readonly wakeUpsPerSecond: number;
}

/** Time until whoever waits has settled down: many begin with short pauses between polls. */
const SETTLE_MS = 5_000;

/** What processes cost while they wait and nothing happens. */
export async function measureIdle(
  testbed: Testbed,
  contender: Contender,
  task: IdleTask,
): Promise<IdleResult> {
  const { processes, waitersEach, waitingMs } = task;
  const started: Worker[] = [];
  const open = async (): Promise<Worker> => {
    const worker = testbed.startWorker();
    started.push(worker);
    await worker.call.open(contender.store, contender.name, testbed.url);
    return worker;
  };
  try {
    const name = `bench:idle:${contender.name}:${processes}:${waitersEach}`;
    await (await open()).call.hold(name);
    const waiting: Worker[] = [];
    while (waiting.length < processes) {
      const worker = await open();
      await worker.call.waitInVain(name, waitersEach);
      waiting.push(worker);
    }
    await delay(SETTLE_MS);
    const before = await spentBy(waiting);
    await delay(waitingMs);
    const after = await spentBy(waiting);
    return {
      contender: contender.name,
      ...task,
      cores: (after.cpuMicros - before.cpuMicros) / (1_000 * waitingMs),
      wakeUpsPerSecond: (1_000 * (after.wakeUps - before.wakeUps)) / waitingMs,
    };
  } finally {
    await Promise.all(started.map((worker) => testbed.end(worker)));
  }
}

async function spentBy(workers: readonly Worker[]): Promise<{ cpuMicros: number; wakeUps: number }> {
  const all = await Promise.all(workers.map(({ call }) => call.spent()));
  return {
    cpuMicros: all.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0),
    wakeUps: all.reduce((sum, { wakeUps }) => sum + wakeUps, 0),
  };
}

export function idleSection(idle: readonly IdleResult[]): Section {
  return {
    title: 'Waiting in vain: what all who wait cost together, without the holder',
    table: tableOf(idle, [
      ['', ({ contender }) => contender],
      ['processes', ({ processes }) => whole(processes)],
      ['waiters each', ({ waitersEach }) => whole(waitersEach)],
      ['% of a core', ({ cores }) => (100 * cores).toFixed(2)],
      ['wake-ups/s', ({ wakeUpsPerSecond }) => whole(wakeUpsPerSecond)],
    ]),
    note: 'A wake-up is a voluntary context switch of any thread.',
  };
}
