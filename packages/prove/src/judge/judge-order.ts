import { NAMES } from '../names.ts';
import type { Findings, JudgedRun } from './findings.ts';
import type { ObservedHold } from './run-record.ts';

/** One asked before another for certain: its call had this much time to reach the store. */
const APART_MS = 250;
const MOST_BEFORE = 64;

/** Whether anybody was served before a waiter of another process who had asked earlier, and to whom nothing was done. */
export function judgeOrder({ record, disturbances, prefix, slackMs }: JudgedRun): Findings {
  const asked = record.holds
    .filter(({ resource }) => resource === `${prefix}${NAMES.queue}`)
    .sort((a, b) => a.askedAt - b.askedAt);
  const apartMs = Math.max(APART_MS, slackMs / 4);
  const breaches: string[] = [];
  let tested = 0;
  for (const [index, later] of asked.entries()) {
    const before = asked.slice(Math.max(0, index - MOST_BEFORE), index);
    const waiting = before.filter(
      (one) =>
        waitedWhen(one, later, apartMs) &&
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
