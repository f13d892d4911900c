import type { Testbed } from '../conduct/testbed.ts';
import type { Contender } from '../contenders/contender.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import type { Watched } from '../worker/methods.ts';

export interface RenewalResult extends Watched {
  readonly contender: string;
  readonly leases: number;
  readonly ttlMs: number;
  readonly timers: number;
  readonly requestsByRound: readonly number[];
}

export interface RenewalTask {
  readonly leases: number;
  readonly renewalTtlMs: number;
  readonly renewalWatchMs: number;
}

/** Many leases, kept alive by automatic renewal over several rounds. */
export async function measureRenewal(
  testbed: Testbed,
  ours: Contender,
  { leases, renewalTtlMs: ttlMs, renewalWatchMs }: RenewalTask,
): Promise<RenewalResult> {
  const worker = testbed.startWorker();
  try {
    await worker.call.openLocks(ours.store, ours.name, testbed.url, ttlMs);
    const names = Array.from({ length: leases }, (_, index) => `bench:renewal:${ours.name}:${index}`);
    const timers = await worker.call.holdAll(names);
    const [{ times = [] }, watched] = await testbed.meter.count(() => worker.call.watch(renewalWatchMs));
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

export function renewalSection(renewal: readonly RenewalResult[]): Section {
  return {
    title: 'Renewal: leases kept alive by one process',
    table: tableOf(renewal, [
      ['', ({ contender }) => contender],
      ['leases', ({ leases }) => whole(leases)],
      ['ttl ms', ({ ttlMs }) => whole(ttlMs)],
      ['requests a round', ({ requestsByRound }) => requestsByRound.join(', ')],
      ['timers', ({ timers }) => String(timers)],
      ['loop delay p99 ms', ({ delayP99Ms }) => delayP99Ms.toFixed(1)],
      ['max ms', ({ delayMaxMs }) => delayMaxMs.toFixed(1)],
      ['still valid', ({ valid }) => whole(valid)],
    ]),
  };
}
