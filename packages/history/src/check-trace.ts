import { checkOptions } from './check-options.ts';
import { HistoryError, show } from './history-error.ts';
import { judgeBeliefs } from './judge-beliefs.ts';
import { judgeEnds } from './judge-ends.ts';
import { ProcessJudge } from './judge-process.ts';
import type { ReadTrace } from './read-trace.ts';
import { type CheckedRule, RuleBook, type TraceViolation } from './trace-rules.ts';
import { orderedProcesses } from './trace-processes.ts';
import type { TracedResource } from './traced-acquisition.ts';

/** Options of {@link checkTrace}. */
export interface TraceCheckOptions {
  /**
   * How far the wall clocks of the machines may be apart, in milliseconds. Of one machine the monotonic clock counts.
   * @defaultValue 0 for one machine, else 100
   */
  readonly skewMs?: number | undefined;
  /**
   * For how long a name may be held by nobody while somebody waits who is granted later, in milliseconds.
   * @defaultValue `Infinity`
   */
  readonly idleMs?: number | undefined;
  /**
   * For how long after its answer a copy of a request may still reach the store, in milliseconds.
   * @defaultValue 0
   */
  readonly lateMs?: number | undefined;
}

/** The verdict on a trace. */
export interface TraceVerdict {
  readonly processes: number;
  readonly machines: number;
  readonly lines: number;
  readonly acquisitions: number;
  /** How many of them were believed. */
  readonly beliefs: number;
  /** The skew that was allowed, in milliseconds. */
  readonly skewMs: number;
  readonly rules: readonly CheckedRule[];
  /** What broke a rule. Empty: nothing did. */
  readonly violations: readonly TraceViolation[];
}

const SKEW_MS = 100;

// setup: import { checkTrace, readTrace } from '@locks/history';
/**
 * Holds a trace to the rules of the specification: what a client may believe when, which token follows which, and what must be given back.
 *
 * @param trace - of `readTrace()` or `parseTrace()`
 * @throws HistoryError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const { violations } = checkTrace(readTrace('worker-1.jsonl', 'worker-2.jsonl'));
 * for (const { clause, sentence, lines } of violations) console.error(clause, sentence, lines);
 * ```
 */
export function checkTrace(trace: ReadTrace, options: TraceCheckOptions = {}): TraceVerdict {
  checkOptions('checkTrace()', options, ['skewMs', 'idleMs', 'lateMs']);
  const { idleMs = Number.POSITIVE_INFINITY, lateMs = 0 } = options;
  const isTime = (ms: unknown): boolean => typeof ms === 'number' && ms >= 0;
  for (const [name, ms] of Object.entries({ skewMs: options.skewMs ?? 0, idleMs, lateMs }))
    if (!isTime(ms)) throw new HistoryError(`checkTrace(): ${name} must be milliseconds, not ${show(ms)}.`);
  const { processes, machines, losses, startedAt } = orderedProcesses(trace);
  const skewMs = options.skewMs ?? (machines > 1 ? SKEW_MS : 0);
  const book = new RuleBook();
  const resources = new Map<string, TracedResource>();
  const resourceOf = (store: string, name: string): TracedResource => {
    const key = JSON.stringify([store, name]);
    let resource = resources.get(key);
    if (resource === undefined)
      resources.set(key, (resource = { name, acquisitions: new Map(), takenAway: [], limits: [] }));
    return resource;
  };
  const read = processes.map((process) => new ProcessJudge(process, book, lateMs, resourceOf).read());
  for (const acquisitions of read) judgeEnds(acquisitions, book);
  let acquisitions = 0;
  let beliefs = 0;
  for (const resource of resources.values()) {
    acquisitions += resource.acquisitions.size;
    beliefs += judgeBeliefs(resource, book, { startedAt, skewMs, idleMs, losses });
  }
  return {
    processes: processes.length,
    machines,
    lines: trace.lines.length,
    acquisitions,
    beliefs,
    skewMs,
    rules: book.rules,
    violations: book.violations,
  };
}
