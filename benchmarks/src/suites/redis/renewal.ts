import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../../contenders/contender.ts';
import type { Stage } from '../../conduct/stage.ts';
import { countRequests } from '../../measure/monitor-tap.ts';
import type { RenewalResult } from './result.ts';
import type { Settings } from './settings.ts';

/** Requests that are further apart than this belong to different rounds of renewal. */
const PAUSE_MS = 300;

/** Many leases, kept alive by automatic renewal over several rounds. */
export async function measureRenewal(
  stage: Stage,
  ours: Contender,
  settings: Settings,
): Promise<RenewalResult> {
  const { leases, renewalTtlMs: ttlMs, renewalWatchMs } = settings;
  const worker = stage.startWorker();
  try {
    await worker.call('openLocks', ours.name, stage.url, ttlMs);
    const names = Array.from({ length: leases }, (_, index) => `bench:renewal:${ours.name}:${index}`);
    const timers = await worker.call('holdAll', names);
    const [{ times }, watched] = await countRequests(stage.control, async () => {
      const seen = await worker.call('watch', renewalWatchMs);
      // A round that has begun is counted to its end.
      await delay(PAUSE_MS);
      return seen;
    });
    await worker.call('letGo');
    return { contender: ours.name, leases, ttlMs, timers, requestsByRound: roundsOf(times), ...watched };
  } finally {
    await stage.dismiss(worker);
  }
}

function roundsOf(times: readonly number[]): number[] {
  const rounds: number[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const time of times) {
    if (time - last > PAUSE_MS) rounds.push(0);
    rounds.push((rounds.pop() ?? 0) + 1);
    last = time;
  }
  return rounds;
}
