/** The process of one mutant: runs the cases that its parent sends, and answers which of them failed. */
import {
  type ConformanceCase,
  conformanceCases,
  type Outcome,
  runCase,
  startHarness,
} from '@locks/core/conformance';
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
  readonly ms: number;
  readonly reason: string | undefined;
  /** Whether the case started processes. */
  readonly forked: boolean;
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
