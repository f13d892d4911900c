import type { Contender } from '../../contenders/contender.ts';
import { countRequests } from '../../measure/monitor-tap.ts';
import type { RenewalResult } from './result.ts';
import type { RedisTestbed } from './redis-testbed.ts';
import type { Settings } from './settings.ts';

/** Many leases, kept alive by automatic renewal over several rounds. */
export async function measureRenewal(
  testbed: RedisTestbed,
  ours: Contender,
  settings: Settings,
): Promise<RenewalResult> {
  const { leases, renewalTtlMs: ttlMs, renewalWatchMs } = settings;
  const worker = testbed.startWorker();
  try {
    await worker.call.openLocks(ours.store, ours.name, testbed.url, ttlMs);
    const names = Array.from({ length: leases }, (_, index) => `bench:renewal:${ours.name}:${index}`);
    const timers = await worker.call.holdAll(names);
    const [{ times }, watched] = await countRequests(testbed.server.control, () =>
      worker.call.watch(renewalWatchMs),
    );
    await worker.call.letGo();
    const requestsByRound = roundsOf(times, ttlMs / 3);
    return { contender: ours.name, leases, ttlMs, timers, requestsByRound, ...watched };
  } finally {
    await testbed.end(worker);
  }
}

/** Every lease is renewed once in a third of its ttl: the requests in each of them, counted from the first request. */
function roundsOf(times: readonly number[], periodMs: number): number[] {
  const [first = 0] = times;
  const roundOf = (time: number): number => Math.floor((time - first) / periodMs);
  // The last interval is left out: the end of the measurement cut it off.
  const complete = roundOf(times.at(-1) ?? first);
  return Array.from(
    { length: complete },
    (_, round) => times.filter((time) => roundOf(time) === round).length,
  );
}
