import type { Contender } from '../contenders/contender.ts';
import type { Testbed } from '../conduct/testbed.ts';
import { median, quantile } from '../measure/quantiles.ts';
import { type Burst, type Contention, runBurst } from './burst.ts';
import {
  type CompareSettings,
  type Comparison,
  type ContenderResult,
  countedOf,
  type CountedRequests,
  type Round,
} from './comparison.ts';

interface Entry {
  readonly contender: Contender;
  readonly counted: CountedRequests;
  readonly rounds: Round[];
}

const PINGS = 40;
const RUSH_TURNS = 20;

/** Waiters that all want one lock at once. */
export async function compareContended(
  testbed: Testbed,
  contenders: readonly Contender[],
  settings: CompareSettings,
  contention: Contention,
): Promise<Comparison> {
  const entries: Entry[] = [];
  for (const contender of contenders) entries.push(await prepare(testbed, contender, settings, contention));
  for (let round = 0; round < settings.rounds; round += 1) {
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      entry.rounds.push(await timedBlock(testbed, entry, settings, contention));
    }
  }
  return {
    id: contention.id,
    title: contention.title,
    contended: true,
    processes: contention.processes,
    contenders: entries.map(({ contender: { name, kind, floor }, rounds, counted }): ContenderResult => {
      return { name, kind, floor, rounds, counted };
    }),
  };
}

async function prepare(
  testbed: Testbed,
  contender: Contender,
  settings: CompareSettings,
  contention: Contention,
): Promise<Entry> {
  const limitMs = limitOf(settings, contention);
  await warmUp(testbed, contender, settings, contention);
  // The processes are started before the counting: requests to connect are not those of the locks.
  await testbed.workersOf(contender, contention.processes);
  const [requests, { holds, elapsedMs }] = await testbed.meter.count(() =>
    runBurst(testbed, contender, contention, settings.sectionMs, limitMs),
  );
  return { contender, counted: countedOf(requests, holds.length, elapsedMs), rounds: [] };
}

/**
 * A burst is a few dozen calls of each process, too few for its code to be optimised as it is in a process that has worked
 * for a minute. So each process first takes a lock of its own again and again, and then all of them contend for one lock
 * without a pause.
 */
async function warmUp(
  testbed: Testbed,
  contender: Contender,
  settings: CompareSettings,
  contention: Contention,
): Promise<void> {
  const { warmUpBurstsMs: forMs, rushTurns = RUSH_TURNS } = settings;
  const workers = await testbed.workersOf(contender, contention.processes);
  await Promise.all(
    workers.map((worker, index) => {
      const name = `bench:${contender.name}:${contention.id}:warm-up:${index}`;
      return worker.call.loop({ names: [name], forMs });
    }),
  );
  const rush = { ...contention, turns: Math.max(rushTurns, contention.turns) };
  const until = performance.now() + forMs;
  let burst: Burst;
  do burst = await runBurst(testbed, contender, rush, 0, settings.turnsLimitMs);
  while (!burst.cut && performance.now() < until);
}

async function timedBlock(
  testbed: Testbed,
  { contender, counted, rounds }: Entry,
  settings: CompareSettings,
  contention: Contention,
): Promise<Round> {
  // A warm-up after the pause; useless where the time limit ends it, and with it the processes.
  if (rounds.at(-1)?.cut !== true)
    await runBurst(testbed, contender, contention, settings.sectionMs, limitOf(settings, contention));
  const [first] = await testbed.workersOf(contender, contention.processes);
  const pings = await first?.call.ping(PINGS, settings.sectionMs);
  const spent = await testbed.meter.watch?.();
  const bursts: Burst[] = [];
  const until = performance.now() + settings.burstsMs;
  do
    bursts.push(
      await runBurst(testbed, contender, contention, settings.sectionMs, limitOf(settings, contention)),
    );
  while (performance.now() < until);
  const cost = await spent?.(Object.keys(counted.byCommand));
  const waits = bursts.flatMap((burst) => burst.waits);
  const holds = bursts.reduce((sum, burst) => sum + burst.holds.length, 0);
  const served = bursts.reduce((sum, burst) => sum + burst.served, 0);
  const elapsedMs = bursts.reduce((sum, burst) => sum + burst.elapsedMs, 0);
  return {
    perSecond: (1000 * served) / elapsedMs,
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    gapMs: median(bursts.flatMap(({ gaps }) => gaps)),
    ...(pings === undefined ? undefined : { pingMs: pings.busyMs, restedPingMs: pings.restedMs }),
    ...(cost && { serverMicros: cost.commandMicros / holds }),
    ...(cost?.cpuMicros !== undefined && { serverCpuMicros: cost.cpuMicros / holds }),
    overlaps: bursts.reduce((sum, burst) => sum + burst.overlaps, 0),
    cut: bursts.some((burst) => burst.cut),
  };
}

function limitOf(settings: CompareSettings, { turns }: Contention): number {
  return turns === 1 ? settings.burstLimitMs : settings.turnsLimitMs;
}
