import type { Findings, JudgedRun } from './findings.ts';
import type { ObservedHold } from './run-record.ts';

/** How long a free lock may stay idle while somebody waits, in milliseconds: docs/spec.md §7.7. */
const IDLE_MS = 1_000;

/** How long the locks of killed workers were refused to somebody who waited, and to whom nothing was done. */
export function judgeCrashes(run: JudgedRun): Findings {
  const breaches: string[] = [];
  const times: number[] = [];
  for (const dead of run.record.holds) {
    if (dead.end !== 'crashed' || dead.mode.kind === 'shared' || dead.mode.kind === 'permit') continue;
    const { refusedMs, boundMs, next } = refusalAfter(run, dead) ?? {};
    if (refusedMs === undefined || boundMs === undefined) continue;
    times.push(refusedMs);
    if (refusedMs > boundMs)
      breaches.push(
        `The lock ${JSON.stringify(dead.resource)} of ${dead.worker}, which was killed, was refused to ${next} for ${Math.round(refusedMs)} ms; the promise is ${Math.round(boundMs)} ms.`,
      );
  }
  const longest = Math.max(...times);
  return {
    tested: times.length,
    breaches,
    ...(times.length > 0 && { measured: `free after ${Math.round(longest)} ms at most` }),
  };
}

interface Refusal {
  readonly refusedMs: number;
  readonly boundMs: number;
  /** To whom it was refused. */
  readonly next: string;
}

/** `undefined`: nobody waited who could show it. */
function refusalAfter(
  { record, disturbances, capabilities, holdMs, slackMs }: JudgedRun,
  dead: ObservedHold,
): Refusal | undefined {
  const diedAt = dead.until;
  const boundMs = holdMs + (capabilities.ttl.marginMs ?? 0) + IDLE_MS + slackMs;
  const waiting = record.waits.filter(
    ({ resource, worker, askedAt, endedAt, waitMs, abortedAt }) =>
      resource === dead.resource &&
      abortedAt === undefined &&
      worker !== dead.worker &&
      askedAt < diedAt + holdMs &&
      endedAt > diedAt &&
      // A wait that ends before the bound shows nothing.
      (waitMs > boundMs + slackMs || endedAt > diedAt + boundMs) &&
      disturbances.isQuiet(worker, { from: Math.max(askedAt, diedAt - holdMs), until: endedAt }),
  );
  const [first] = waiting.sort((a, b) => a.endedAt - b.endedAt);
  if (first === undefined || first.outcome === 'failed') return undefined;
  // A waiter of the same worker may come first, which counts for the idle gap of the store (docs/spec.md §7.7).
  const isBehindTheDead = record.deadWaits.some(
    ({ worker, resource, askedAt }) =>
      worker === dead.worker && resource === dead.resource && askedAt < first.askedAt,
  );
  if (isBehindTheDead) return undefined;
  // Before the one that is asked here, others may have held the lock.
  const freeAt = record.holds.find(({ resource, from }) => resource === dead.resource && from > diedAt)?.from;
  const refusedUntil = Math.min(freeAt ?? first.endedAt, first.endedAt);
  return {
    refusedMs: Math.max(0, refusedUntil - Math.max(diedAt, first.askedAt)),
    boundMs,
    next: first.worker,
  };
}
