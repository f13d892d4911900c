import { withTimeLimit } from '../src/backend/time-limit.ts';
import type { ConformanceCase } from './case.ts';
import type { Harness } from './harness.ts';
import type { CaseResult } from './outcome.ts';
import { CaseContext } from './case-context.ts';

/** The time limit of a case: one that hangs has failed. */
const CASE_MS = 60_000;

/** Runs one case and gives its outcome. */
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
  const context = new CaseContext(harness, probe, testCase.id, seed);
  context.onEnd(() => probe.close());
  const missing = testCase.missing?.(probe.capabilities, harness);
  try {
    if (missing?.missing === 'hook') return { outcome: 'untested', reason: missing.reason };
    if (missing?.missing === 'capability') {
      if (testCase.refused === undefined) {
        return { outcome: 'untested', reason: `${missing.reason}, and nothing asserts that it is refused` };
      }
      await withLimit(testCase.refused(context), limitMs);
      return { outcome: 'not-applicable', reason: missing.reason };
    }
    await withLimit(testCase.run(context), limitMs);
    return { outcome: 'passed' };
  } catch (error) {
    context.hasFailed = true;
    return { outcome: 'failed', reason: reasonOf(error, seed), error };
  } finally {
    // A store that was broken on purpose may fail the clean-up; the case has its outcome already.
    await context.end().catch(() => {});
  }
}

function withLimit(work: Promise<void>, limitMs: number): Promise<void> {
  return withTimeLimit(work, limitMs, () => {
    throw new Error(`The case did not end within ${limitMs} ms.`);
  });
}

function reasonOf(error: unknown, seed: number): string {
  const text = error instanceof Error ? error.message : String(error);
  return `${text} (seed ${seed})`;
}
