/** The process of one mutant: runs the cases that it is sent, and answers which of them failed. */
import {
  type ConformanceCase,
  conformanceCases,
  type Outcome,
  runCase,
  startHarness,
} from '@locks/core/conformance';
import harness from './mutant-harness.ts';

export interface MutantOrder {
  readonly cases: readonly string[];
  readonly seeds: readonly number[];
  readonly limitMs: number;
  /** How many cases run at a time. */
  readonly atOnce: number;
}

export interface CaseVerdict {
  readonly seed: number;
  readonly id: string;
  readonly outcome: Outcome;
  readonly ms: number;
  readonly reason: string | undefined;
  /** Whether it started processes. */
  readonly forked: boolean;
}

// A broken lock may break a promise that nobody handles: that is the mutant's way, and no verdict.
process.on('unhandledRejection', () => {});

const started = await startHarness(harness);
process.on('disconnect', () => void started.teardown().finally(() => process.exit()));
process.on('message', (order: MutantOrder) => {
  judge(order).then(
    (verdicts) => process.send?.(verdicts),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});

async function judge({ cases, seeds, limitMs, atOnce }: MutantOrder): Promise<CaseVerdict[]> {
  const queue = seeds.flatMap((seed) => {
    const chosen = conformanceCases.filter(({ id }) => cases.includes(id));
    return chosen.map((testCase) => ({ testCase, seed }));
  });
  const verdicts: CaseVerdict[] = [];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      verdicts.push(await verdictOn(next.testCase, next.seed, limitMs));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return verdicts;
}

async function verdictOn(testCase: ConformanceCase, seed: number, limitMs: number): Promise<CaseVerdict> {
  let forked = false;
  const watched = {
    ...harness,
    get module() {
      forked = true;
      return harness.module;
    },
  };
  const { id, outcome, reason, ms } = await runCase(testCase, watched, seed, limitMs);
  return { seed, id, outcome, ms, reason, forked };
}
