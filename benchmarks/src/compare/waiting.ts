import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../contenders/contender.ts';
import type { Testbed } from '../conduct/testbed.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';

export interface WaitingResult {
  readonly contender: string;
  readonly waiters: number;
  readonly locks: number;
  readonly seconds: number;
  /** Requests of the waiting and the holding process, in all. */
  readonly requestsPerSecond: number;
  /** Commands called inside scripts, where the server tells them apart. */
  readonly callsInScriptsPerSecond?: number;
  readonly byCommand?: Readonly<Record<string, number>>;
}

export interface WaitingTask {
  readonly waiters: number;
  readonly locks: number;
  readonly waitingMs: number;
  /** The ttl of the held locks: so long that their renewals are not counted. @defaultValue 30 000 */
  readonly ttlMs?: number;
}

/** Time after the last arrival: an arrival costs more than waiting does, and polling begins at short intervals. */
const SETTLE_MS = 2_000;

/** What the waiters of one process cost while nothing happens and another process holds their locks. */
export async function measureWaiting(
  testbed: Testbed,
  ours: Contender,
  { waiters, locks, waitingMs, ttlMs = 30_000 }: WaitingTask,
): Promise<WaitingResult> {
  const holder = testbed.startWorker();
  const queue = testbed.startWorker();
  try {
    await holder.call.openLocks(ours.store, ours.name, testbed.url, ttlMs);
    await queue.call.openLocks(ours.store, ours.name, testbed.url, ttlMs);
    const names = Array.from(
      { length: locks },
      (_, index) => `bench:waiting:${ours.name}:${waiters}:${locks}:${index}`,
    );
    await holder.call.holdAll(names);
    await queue.call.queueUp(Array.from({ length: waiters }, (_, index) => names[index % locks] as string));
    if (waiters > 0) await delay(SETTLE_MS);
    const [{ total, sent, callsInScripts }] = await testbed.meter.count(() => delay(waitingMs));
    await queue.call.letGo();
    await holder.call.letGo();
    const seconds = waitingMs / 1000;
    const requestsPerSecond = total / seconds;
    return {
      contender: ours.name,
      waiters,
      locks,
      seconds,
      requestsPerSecond,
      ...(callsInScripts !== undefined && { callsInScriptsPerSecond: callsInScripts / seconds }),
      byCommand: Object.fromEntries(sent),
    };
  } finally {
    await testbed.end(queue);
    await testbed.end(holder);
  }
}

export function waitingSection(waiting: readonly WaitingResult[]): Section {
  const hasScripts = waiting.some(({ callsInScriptsPerSecond }) => callsInScriptsPerSecond !== undefined);
  return {
    title: 'Waiting: waiters of one process on held locks, holder included',
    table: tableOf(waiting, [
      ['', ({ contender }) => contender],
      ['waiters', ({ waiters }) => whole(waiters)],
      ['locks', ({ locks }) => whole(locks)],
      ['seconds', ({ seconds }) => String(seconds)],
      ['requests/s', ({ requestsPerSecond }) => requestsPerSecond.toFixed(1)],
      hasScripts && [
        'commands in scripts/s',
        ({ callsInScriptsPerSecond }) => callsInScriptsPerSecond?.toFixed(0) ?? '',
      ],
    ]),
  };
}
