import { NAMES } from '../names.ts';
import type { Disturbances } from './disturbances.ts';
import type { Findings, JudgedRun } from './findings.ts';
import type { ObservedHold, RunRecord } from './run-record.ts';

/** The least time by which one asked before another for certain: its call had to reach the store, and in a file to win a race for it. */
const LEAST_APART_MS = 400;
/** The first calls of a worker meet a client that has just started. */
const WARM_UP_MS = 2_000;
const MOST_BEFORE = 64;

/** Whether anybody was served before a waiter of another process who had asked earlier, and to whom nothing was done. */
export function judgeOrder({ record, disturbances, prefix }: JudgedRun): Findings {
  const asked = record.holds
    .filter(({ resource }) => resource === `${prefix}${NAMES.queue}`)
    .sort((a, b) => a.askedAt - b.askedAt);
  const apartMs = Math.max(LEAST_APART_MS, 1.5 * slowestAnswerMs(record, disturbances));
  const warmFrom = warmTimes(record);
  const breaches: string[] = [];
  let tested = 0;
  for (const [index, later] of asked.entries()) {
    const before = asked.slice(Math.max(0, index - MOST_BEFORE), index);
    const waiting = before.filter(
      (one) =>
        waitedWhen(one, later, apartMs) &&
        one.askedAt >= (warmFrom.get(one.worker) ?? 0) &&
        disturbances.isQuiet(one.worker, { from: one.askedAt, until: one.from }),
    );
    if (waiting.length === 0) continue;
    tested += 1;
    const overtaken = waiting.find((one) => one.from > later.from);
    if (overtaken !== undefined)
      breaches.push(
        `${later.worker} was served before ${overtaken.worker}, which had asked ${Math.round(later.askedAt - overtaken.askedAt)} ms earlier.`,
      );
  }
  return { tested, breaches };
}

function waitedWhen(one: ObservedHold, later: ObservedHold, apartMs: number): boolean {
  return one.worker !== later.worker && one.askedAt + apartMs < later.askedAt && one.from > later.askedAt;
}

/** The longest time that the store took beyond a short wait: a waiter stands in the queue by then, and not before. */
function slowestAnswerMs({ waits }: RunRecord, disturbances: Disturbances): number {
  let slowest = 0;
  for (const { worker, outcome, abortedAt, askedAt, endedAt, waitMs } of waits) {
    const tookMs = endedAt - askedAt - waitMs;
    if (outcome !== 'refused' || abortedAt !== undefined || tookMs <= slowest) continue;
    if (disturbances.isQuiet(worker, { from: askedAt, until: endedAt })) slowest = tookMs;
  }
  return slowest;
}

function warmTimes({ waits }: RunRecord): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const { worker, askedAt } of waits) if (!first.has(worker)) first.set(worker, askedAt + WARM_UP_MS);
  return first;
}
