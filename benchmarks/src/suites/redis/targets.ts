import {
  type Comparison,
  type ContenderResult,
  floorOf,
  gapInPings,
  gapInRestedPings,
  overlapsOf,
  paired,
  typical,
} from '../../compare/comparison.ts';
import type { Target } from '../../report/target.ts';
import type { Report } from './result.ts';

/** A process with waiters may send this many requests a second beside those of its acquisitions. */
const REQUESTS_PER_SECOND_AND_PROCESS = 1;

/** Every figure that has a target, as far as its row was measured. */
export function judge(report: Report): Target[] {
  return [
    ...report.comparisons.flatMap((comparison) =>
      comparison.contenders
        .filter(({ kind }) => kind === 'ours')
        .flatMap((result) => judgeComparison(comparison, result)),
    ),
    ...judgeOthers(report),
  ];
}

function judgeComparison(comparison: Comparison, result: ContenderResult): Target[] {
  const target = (asked: string, measured: string, reached: boolean): Target => {
    return { row: comparison.id, contender: result.name, asked, measured, reached };
  };
  const floor = floorOf(comparison, result);
  if (!comparison.contended) return judgeUncontended(comparison, result, floor, target);
  if (comparison.id === 'turns') return [...judgeFairness(result, target), judgeOverlaps(result, target)];
  return [
    ...judgeHandOff(comparison, result, target),
    ...judgeAgainstPoll(comparison, result, floor, target),
  ];
}

type MakeTarget = (asked: string, measured: string, reached: boolean) => Target;

const leastRatio: Readonly<Record<string, number>> = { sequential: 0.85, keys: 0.95 };

function judgeUncontended(
  { id }: Comparison,
  result: ContenderResult,
  floor: ContenderResult | undefined,
  target: MakeTarget,
): Target[] {
  const { perOperation } = result.counted;
  const targets = [target('exactly 2 requests', perOperation.toFixed(3), perOperation === 2)];
  const least = leastRatio[id];
  if (floor === undefined || least === undefined) return targets;
  const ratio = paired(result, floor, (ours, raw) => ours.perSecond / raw.perSecond);
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

function judgeHandOff(comparison: Comparison, result: ContenderResult, target: MakeTarget): Target[] {
  const { counted } = result;
  const allowance = (REQUESTS_PER_SECOND_AND_PROCESS * comparison.processes * counted.elapsedMs) / 1000;
  const perOperation = Math.max(0, counted.requests - allowance) / counted.operations;
  const gap = gapInPings(result);
  const restedGap = gapInRestedPings(result);
  return [
    target(
      '≤ 2.1 requests per acquisition, plus 1 a second per process',
      `${perOperation.toFixed(2)} (${counted.perOperation.toFixed(2)} with those)`,
      perOperation <= 2.1,
    ),
    target(
      'median gap ≤ 3 PING round trips',
      `${gap.toFixed(2)} (${restedGap.toFixed(2)} of a PING after the same rest)`,
      gap <= 3,
    ),
    judgeOverlaps(result, target),
    ...comparison.contenders
      .filter(({ kind }) => kind === 'peer')
      .map((peer) => {
        const speed = paired(result, peer, (ours, theirs) => ours.perSecond / theirs.perSecond);
        const wait = paired(result, peer, (ours, theirs) => theirs.waitP99Ms / ours.waitP99Ms);
        const measured = `× ${speed.toFixed(2)} hand-offs/s, p99 ÷ ${wait.toFixed(2)}`;
        return target(`ahead of ${peer.name}`, measured, speed > 1 && wait > 1);
      }),
  ];
}

function judgeOverlaps(result: ContenderResult, target: MakeTarget): Target {
  const overlaps = overlapsOf(result);
  return target('no overlap', String(overlaps), overlaps === 0);
}

function judgeAgainstPoll(
  { processes }: Comparison,
  result: ContenderResult,
  floor: ContenderResult | undefined,
  target: MakeTarget,
): Target[] {
  if (floor === undefined) return [];
  const least = processes === 1 ? 5 : 1.5;
  const speed = paired(result, floor, (ours, poll) => ours.perSecond / poll.perSecond);
  return [target(`≥ ${least} × the hand-offs/s of a 10 ms poll`, `× ${speed.toFixed(2)}`, speed >= least)];
}

function judgeFairness(result: ContenderResult, target: MakeTarget): Target[] {
  const spread = typical(result, (round) => round.waitP99Ms / round.waitP50Ms);
  return [target('p99 wait ≤ 1.5 × p50', `× ${spread.toFixed(2)}`, spread <= 1.5)];
}

function judgeOthers({ core, renewal = [], waiting = [], killed = [], memory = [] }: Report): Target[] {
  const targets: Target[] = [];
  const add = (row: string, contender: string, asked: string, measured: string, reached: boolean): void => {
    targets.push({ row, contender, asked, measured, reached });
  };
  if (core !== undefined) {
    add(
      'core',
      '@locks/core',
      '≤ 1.5 µs of its own',
      `${core.coreMicros.toFixed(2)} µs`,
      core.coreMicros <= 1.5,
    );
  }
  for (const { contender, leases, requestsByRound, timers, delayP99Ms, delayMaxMs, valid } of renewal) {
    const most = Math.max(...requestsByRound);
    const rounds = requestsByRound.length;
    add(
      'renewal',
      contender,
      '≤ 100 requests a round',
      `${requestsByRound.join(', ')}`,
      most <= 100 && rounds >= 2,
    );
    add('renewal', contender, 'one timer', String(timers), timers === 1);
    const delay = `${delayP99Ms.toFixed(1)} ms (max ${delayMaxMs.toFixed(1)})`;
    add('renewal', contender, 'event loop delay p99 < 10 ms', delay, delayP99Ms < 10);
    add('renewal', contender, 'all leases live', `${valid} of ${leases}`, valid === leases);
  }
  for (const { contender, waiters, locks, requestsPerSecond, callsInScriptsPerSecond } of waiting) {
    const where = `${waiters} waiters on ${locks === 1 ? 'one lock' : `${locks} locks`}`;
    const requests = requestsPerSecond.toFixed(1);
    add('waiting', contender, `≤ 20 requests/s (${where})`, requests, requestsPerSecond <= 20);
    if (locks > 1 || callsInScriptsPerSecond === undefined) continue;
    const calls = callsInScriptsPerSecond.toFixed(0);
    const asked = `≤ 100 commands in scripts/s (${where})`;
    add('waiting', contender, asked, calls, callsInScriptsPerSecond <= 100);
  }
  for (const { contender, p50Ms, p90Ms } of killed) {
    add('kill', contender, 'p50 ≤ 15 ms', `${p50Ms.toFixed(1)} ms`, p50Ms <= 15);
    add('kill', contender, 'p90 ≤ 25 ms', `${p90Ms.toFixed(1)} ms`, p90Ms <= 25);
  }
  for (const { contender, heapGrowthBytes, otherKeys, tokenKeys } of memory) {
    const grown = heapGrowthBytes / 2 ** 20;
    add('memory', contender, 'heap back within 5 MB', `${grown.toFixed(2)} MB`, grown <= 5);
    const left = `${otherKeys} others beside ${tokenKeys} token keys`;
    add(
      'memory',
      contender,
      'only token keys left, one per slot',
      left,
      otherKeys <= 0 && tokenKeys <= 16_384,
    );
  }
  return targets;
}
