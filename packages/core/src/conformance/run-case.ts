import type { ConformanceCase } from './case.ts';
import type { Harness } from './harness.ts';
import type { CaseResult } from './outcome.ts';
import { Stage } from './stage.ts';

/** A case that hangs is a failed case. */
const CASE_MS = 60_000;

/** Runs one case and tells which of the five outcomes it has. */
export async function runCase(
  testCase: ConformanceCase,
  harness: Harness,
  seed: number,
  limitMs: number = CASE_MS,
): Promise<CaseResult> {
  const startedAt = performance.now();
  const result = await outcomeOf(testCase, harness, seed, limitMs);
  return { id: testCase.id, ...result, ms: Math.round(performance.now() - startedAt) };
}

async function outcomeOf(
  testCase: ConformanceCase,
  harness: Harness,
  seed: number,
  limitMs: number,
): Promise<Pick<CaseResult, 'outcome' | 'reason' | 'error'>> {
  const waiver = harness.waivers?.[testCase.id];
  if (waiver !== undefined) return { outcome: 'waived', reason: `${waiver.reason} (${waiver.link})` };
  const probe = await harness.createBackend();
  const stage = new Stage(harness, probe, testCase.id, seed);
  stage.onEnd(() => probe.close());
  const missing = testCase.missing?.(probe.capabilities, harness);
  try {
    if (missing?.missing === 'hook') return { outcome: 'untested', reason: missing.reason };
    if (missing?.missing === 'capability') {
      if (testCase.refused === undefined) {
        return { outcome: 'untested', reason: `${missing.reason}, and nothing asserts that it is refused` };
      }
      await withLimit(testCase.refused(stage), limitMs);
      return { outcome: 'not-applicable', reason: missing.reason };
    }
    await withLimit(testCase.run(stage), limitMs);
    return { outcome: 'passed' };
  } catch (error) {
    stage.hasFailed = true;
    return { outcome: 'failed', reason: reasonOf(error, seed), error };
  } finally {
    // A store that was broken on purpose may fail the clean-up; the case has its outcome already.
    await stage.end().catch(() => {});
  }
}

async function withLimit(work: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The case did not end within ${limitMs} ms.`)), limitMs);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown, seed: number): string {
  const text = error instanceof Error ? error.message : String(error);
  return `${text} (seed ${seed})`;
}
