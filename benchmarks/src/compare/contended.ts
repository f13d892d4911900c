import type { Contender } from '../contenders/contender.ts';
import type { Stage } from '../conduct/stage.ts';
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

/** Waiters that all want one lock at once. */
export async function compareContended(
  stage: Stage,
  contenders: readonly Contender[],
  settings: CompareSettings,
  contention: Contention,
): Promise<Comparison> {
  const entries: Entry[] = [];
  for (const contender of contenders) entries.push(await prepare(stage, contender, settings, contention));
  for (let round = 0; round < settings.rounds; round += 1) {
    for (const entry of round % 2 === 0 ? entries : entries.toReversed()) {
      entry.rounds.push(await timedBlock(stage, entry, settings, contention));
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
  stage: Stage,
  contender: Contender,
  settings: CompareSettings,
  contention: Contention,
): Promise<Entry> {
  const limitMs = limitOf(settings, contention);
  await runBurst(stage, contender, contention, settings.sectionMs, limitMs);
  // The processes are there before the counting starts: what they send to connect is not of the locks.
  await stage.crew(contender, contention.processes);
  const [requests, { holds, elapsedMs }] = await stage.meter.count(() =>
    runBurst(stage, contender, contention, settings.sectionMs, limitMs),
  );
  return { contender, counted: countedOf(requests, holds.length, elapsedMs), rounds: [] };
}

async function timedBlock(
  stage: Stage,
  { contender, counted }: Entry,
  settings: CompareSettings,
  contention: Contention,
): Promise<Round> {
  const [first] = await stage.crew(contender, contention.processes);
  const pings = await first?.call('ping', PINGS, settings.sectionMs);
  const spent = await stage.meter.watch?.();
  const bursts: Burst[] = [];
  const until = performance.now() + settings.burstsMs;
  do
    bursts.push(
      await runBurst(stage, contender, contention, settings.sectionMs, limitOf(settings, contention)),
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
