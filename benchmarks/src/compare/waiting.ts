import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../contenders/contender.ts';
import type { Stage } from '../conduct/stage.ts';

export interface WaitingResult {
  readonly contender: string;
  readonly waiters: number;
  readonly locks: number;
  readonly seconds: number;
  /** Of the waiting and the holding process, in all. */
  readonly requestsPerSecond: number;
  readonly byCommand?: Readonly<Record<string, number>>;
}

export interface WaitingTask {
  readonly waiters: number;
  readonly locks: number;
  readonly waitingMs: number;
  /** Of the held locks: long enough, and their renewals are not counted. @defaultValue 30 000 */
  readonly ttlMs?: number;
}

/** For those who came last to settle: what an arrival costs is not what waiting costs, and who polls begins eagerly. */
const SETTLE_MS = 2_000;

/** Waiters of one process on locks that another one holds: what they all cost while nothing happens. */
export async function measureWaiting(
  stage: Stage,
  ours: Contender,
  { waiters, locks, waitingMs, ttlMs = 30_000 }: WaitingTask,
): Promise<WaitingResult> {
  const holder = stage.startWorker();
  const queue = stage.startWorker();
  try {
    await holder.call('openLocks', ours.store, ours.name, stage.url, ttlMs);
    await queue.call('openLocks', ours.store, ours.name, stage.url, ttlMs);
    const names = Array.from(
      { length: locks },
      (_, index) => `bench:waiting:${ours.name}:${waiters}:${locks}:${index}`,
    );
    await holder.call('holdAll', names);
    await queue.call(
      'queueUp',
      Array.from({ length: waiters }, (_, index) => names[index % locks] as string),
    );
    if (waiters > 0) await delay(SETTLE_MS);
    const [{ total, sent }] = await stage.meter.count(() => delay(waitingMs));
    await queue.call('letGo');
    await holder.call('letGo');
    const seconds = waitingMs / 1000;
    const requestsPerSecond = total / seconds;
    return {
      contender: ours.name,
      waiters,
      locks,
      seconds,
      requestsPerSecond,
      byCommand: Object.fromEntries(sent),
    };
  } finally {
    await stage.dismiss(queue);
    await stage.dismiss(holder);
  }
}
