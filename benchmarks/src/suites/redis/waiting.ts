import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../../contenders/contender.ts';
import type { Stage } from '../../conduct/stage.ts';
import { countRequests } from '../../measure/monitor-tap.ts';
import type { WaitingResult } from './result.ts';
import type { Settings } from './settings.ts';

const TTL_MS = 30_000;

/** Waiters of one process on locks that another one holds: what they all cost while nothing happens. */
export async function measureWaiting(
  stage: Stage,
  ours: Contender,
  settings: Settings,
  locks: number,
): Promise<WaitingResult> {
  const { waiters, waitingMs } = settings;
  const holder = stage.startWorker();
  const queue = stage.startWorker();
  try {
    await holder.call('openLocks', ours.name, stage.url, TTL_MS);
    await queue.call('openLocks', ours.name, stage.url, TTL_MS);
    const names = Array.from({ length: locks }, (_, index) => `bench:waiting:${ours.name}:${locks}:${index}`);
    await holder.call('holdAll', names);
    await queue.call(
      'queueUp',
      Array.from({ length: waiters }, (_, index) => names[index % locks] as string),
    );
    const [{ total }] = await countRequests(stage.control, () => delay(waitingMs));
    await queue.call('letGo');
    await holder.call('letGo');
    const seconds = waitingMs / 1000;
    return { contender: ours.name, waiters, locks, seconds, requestsPerSecond: total / seconds };
  } finally {
    await stage.dismiss(queue);
    await stage.dismiss(holder);
  }
}
