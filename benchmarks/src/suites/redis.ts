import {
  type Comparison,
  type ContenderResult,
  floorOf,
  gapInPings,
  gapInRestedPings,
  paired,
} from '../compare/comparison.ts';
import { waitSpread } from '../compare/tables.ts';
import type { Target } from '../report/report.ts';
import { openRedisTestbed } from '../stores/redis.ts';
import { contendedRow, coreRow, killRow, loopRow, memoryRow, renewalRow, waitingRow } from './rows.ts';
import { settingsFor } from './settings.ts';
import { type StoreReport, type StoreSuite, workload } from './stores.ts';
import { aheadOfPeers, judgeOurs, type MakeTarget, noOverlap, speedOver, targetOf } from './targets.ts';

const [sequential, ...contended] = workload as [(typeof workload)[number]];

/** `bench redis`. */
export const redisSuite: StoreSuite = {
  name: 'redis',
  open: openRedisTestbed,
  rows: [
    sequential,
    loopRow({ id: 'keys', title: '64 keys at once', lanes: 64 }),
    ...contended,
    contendedRow({
      id: 'turns',
      title: '4 processes × 8 waiters, each 10 times',
      processes: 4,
      waitersEach: 8,
      turns: 10,
    }),
    coreRow,
    renewalRow,
    waitingRow([
      { waiters: 1_000, locks: 1_000 },
      { waiters: 1_000, locks: 1 },
    ]),
    killRow,
    memoryRow,
  ],
  // Eleven contenders: shorter blocks than with fewer.
  settings: (options) => ({
    ...settingsFor(options),
    ...(options.quick
      ? { blockMs: 80, burstLimitMs: 600, turnsLimitMs: 1_200, waitingMs: 3_000 }
      : { blockMs: 150, burstLimitMs: 1_200, waitingMs: 10_000 }),
  }),
  judge: (report) => [
    ...judgeOurs(report.comparisons, (comparison, result, target) => {
      if (!comparison.contended) return judgeUncontended(comparison, result, target);
      if (comparison.id !== 'turns') return judgeHandOff(comparison, result, target);
      const spread = waitSpread(result);
      return [
        target('p99 wait ≤ 1.5 × p50', `× ${spread.toFixed(2)}`, spread <= 1.5),
        noOverlap(result, target),
      ];
    }),
    ...judgeOthers(report),
  ],
};

const leastRatio: Readonly<Record<string, number>> = { sequential: 0.85, keys: 0.95 };

function judgeUncontended(comparison: Comparison, result: ContenderResult, target: MakeTarget): Target[] {
  const { perOperation } = result.counted;
  const targets = [target('exactly 2 requests', perOperation.toFixed(3), perOperation === 2)];
  const least = leastRatio[comparison.id];
  const floor = floorOf(comparison, result);
  if (floor === undefined || least === undefined) return targets;
  const ratio = speedOver(result, floor);
  const beyond = paired(
    result,
    floor,
    (ours, raw) => (ours.serverMicros ?? Number.NaN) - (raw.serverMicros ?? Number.NaN),
  );
  return [
    ...targets,
    target(`≥ ${least} of the raw floor`, ratio.toFixed(3), ratio >= least),
    target('≤ 4.5 µs of server time beyond raw', `${beyond.toFixed(2)} µs`, beyond <= 4.5),
  ];
}

/** A process with waiters may send this many requests a second beside those of its acquisitions. */
const REQUESTS_PER_SECOND_AND_PROCESS = 1;

function judgeHandOff(comparison: Comparison, result: ContenderResult, target: MakeTarget): Target[] {
  const { counted } = result;
  const { processes } = comparison;
  const allowance = (REQUESTS_PER_SECOND_AND_PROCESS * processes * counted.elapsedMs) / 1000;
  const perOperation = Math.max(0, counted.requests - allowance) / counted.operations;
  const gap = gapInPings(result);
  const floor = floorOf(comparison, result);
  const speed = floor && speedOver(result, floor);
  const least = processes === 1 ? 5 : 1.5;
  return [
    target(
      '≤ 2.1 requests per acquisition, plus 1 a second per process',
      `${perOperation.toFixed(2)} (${counted.perOperation.toFixed(2)} with those)`,
      perOperation <= 2.1,
    ),
    target(
      'median gap ≤ 3 PING round trips',
      `${gap.toFixed(2)} (${gapInRestedPings(result).toFixed(2)} of a PING after the same rest)`,
      gap <= 3,
    ),
    noOverlap(result, target),
    ...aheadOfPeers(comparison, result, target),
    ...(speed === undefined
      ? []
      : [target(`≥ ${least} × the hand-offs/s of a 10 ms poll`, `× ${speed.toFixed(2)}`, speed >= least)]),
  ];
}

function judgeOthers({ core, renewal = [], waiting = [], killed = [], memory = [] }: StoreReport): Target[] {
  const targets: Target[] = [];
  if (core !== undefined) {
    const { coreMicros } = core;
    const ask = targetOf('core', '@locks/core');
    targets.push(ask('≤ 1.5 µs of its own', `${coreMicros.toFixed(2)} µs`, coreMicros <= 1.5));
  }
  for (const { contender, leases, requestsByRound, timers, delayP99Ms, delayMaxMs, valid } of renewal) {
    const ask = targetOf('renewal', contender);
    const isFew = Math.max(...requestsByRound) <= 100 && requestsByRound.length >= 2;
    const delay = `${delayP99Ms.toFixed(1)} ms (max ${delayMaxMs.toFixed(1)})`;
    targets.push(
      ask('≤ 100 requests a round', requestsByRound.join(', '), isFew),
      ask('one timer', String(timers), timers === 1),
      ask('event loop delay p99 < 10 ms', delay, delayP99Ms < 10),
      ask('all leases live', `${valid} of ${leases}`, valid === leases),
    );
  }
  for (const { contender, waiters, locks, requestsPerSecond, callsInScriptsPerSecond: calls } of waiting) {
    const ask = targetOf('waiting', contender);
    const where = `${waiters} waiters on ${locks === 1 ? 'one lock' : `${locks} locks`}`;
    targets.push(ask(`≤ 20 requests/s (${where})`, requestsPerSecond.toFixed(1), requestsPerSecond <= 20));
    if (locks > 1 || calls === undefined) continue;
    targets.push(ask(`≤ 100 commands in scripts/s (${where})`, calls.toFixed(0), calls <= 100));
  }
  for (const { contender, p50Ms, p90Ms } of killed) {
    const ask = targetOf('kill', contender);
    targets.push(
      ask('p50 ≤ 15 ms', `${p50Ms.toFixed(1)} ms`, p50Ms <= 15),
      ask('p90 ≤ 25 ms', `${p90Ms.toFixed(1)} ms`, p90Ms <= 25),
    );
  }
  for (const { contender, heapGrowthBytes, otherKeys, tokenKeys } of memory) {
    const ask = targetOf('memory', contender);
    const grown = heapGrowthBytes / 2 ** 20;
    const left = `${otherKeys} others beside ${tokenKeys} token keys`;
    targets.push(
      ask('heap back within 5 MB', `${grown.toFixed(2)} MB`, grown <= 5),
      ask('only token keys left, one per slot', left, otherKeys <= 0 && tokenKeys <= 16_384),
    );
  }
  return targets;
}
