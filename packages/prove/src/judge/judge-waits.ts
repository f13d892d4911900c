import type { Findings, JudgedRun } from './findings.ts';
import type { WaitFact } from './run-record.ts';

/** Whether waits ended within their time, whatever was done to the network. */
export function judgeWaits(run: JudgedRun): Findings {
  const waits = run.record.waits.filter(({ abortedAt }) => abortedAt === undefined);
  const late = excesses(run, waits, ({ askedAt, waitMs }) => askedAt + waitMs);
  return {
    tested: waits.length,
    breaches: [
      ...late.map(
        ({ worker, waitMs, askedAt, endedAt }) =>
          `A wait of ${worker} for ${waitMs} ms ended after ${Math.round(endedAt - askedAt)} ms.`,
      ),
      ...run.late.map((worker) => `A call of ${worker} did not end.`),
    ],
  };
}

export function judgeAborts(run: JudgedRun): Findings {
  // An abort that found the lock granted is no test.
  const aborted = run.record.waits.filter(
    ({ abortedAt, outcome }) => abortedAt !== undefined && outcome !== 'granted',
  );
  const late = excesses(run, aborted, ({ abortedAt = 0 }) => abortedAt);
  return {
    tested: aborted.length,
    breaches: late.map(
      ({ worker, abortedAt = 0, endedAt }) =>
        `An aborted wait of ${worker} ended ${Math.round(endedAt - abortedAt)} ms after the abort.`,
    ),
  };
}

function excesses(
  { disturbances, slackMs }: JudgedRun,
  waits: readonly WaitFact[],
  dueAt: (wait: WaitFact) => number,
): WaitFact[] {
  return waits.filter((wait) => {
    const { worker, askedAt, endedAt } = wait;
    return (
      disturbances.excessMs(worker, { from: askedAt, until: endedAt }, dueAt(wait) - askedAt + slackMs) > 0
    );
  });
}
