/** The process of one mutant: runs the cases that its parent sends, and answers which of them failed. */
import { conformanceCases, type Outcome, runCase, startHarness } from '@locks/core/conformance';
import { serveCalls } from '@locks/core/conformance/process';
import harness from './mutant-harness.ts';

export interface MutantRun {
  readonly cases: readonly string[];
  readonly seeds: readonly number[];
  readonly limitMs: number;
  /** How many cases run at a time. */
  readonly atOnce: number;
}

/** The commands of a `Judge`. */
export interface JudgeCommands {
  run(options: MutantRun): Promise<CaseVerdict[]>;
  teardown(): Promise<void>;
}

export interface CaseVerdict {
  readonly seed: number;
  readonly id: string;
  readonly outcome: Outcome;
  readonly reason: string | undefined;
}

// A mutant may cause unhandled rejections, which are no verdict.
process.on('unhandledRejection', () => {});

const started = startHarness(harness);
serveCalls({
  run,
  teardown: async () => (await started).teardown(),
} satisfies JudgeCommands);

async function run({ cases, seeds, limitMs, atOnce }: MutantRun): Promise<CaseVerdict[]> {
  await started;
  const queue = seeds.flatMap((seed) => {
    const chosen = conformanceCases.filter(({ id }) => cases.includes(id));
    return chosen.map((testCase) => ({ testCase, seed }));
  });
  const verdicts: CaseVerdict[] = [];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { id, outcome, reason } = await runCase(next.testCase, harness, next.seed, limitMs);
      verdicts.push({ seed: next.seed, id, outcome, reason });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return verdicts;
}
