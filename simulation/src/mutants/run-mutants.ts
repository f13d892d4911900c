import { LockCode, type PlantedErrors } from '../process/lock-code.ts';
import { Simulation } from '../simulation.ts';
import { drawPlan } from '../workload/draw-plan.ts';
import type { BackendKind } from '../workload/plan.ts';
import { coreMutants } from './core-lines.ts';
import { mysqlMutants } from './mysql-lines.ts';
import { redisAdapterMutants } from './redis-adapter.ts';
import { redisFragmentMutants } from './redis-fragments.ts';
import { redisScriptMutants } from './redis-scripts.ts';
import { rulesMutants } from './rules-lines.ts';
import { mutants as suiteMutants } from './suite-mutants.ts';

/** An error that is planted in the sources or around a backend, and what came of it. */
export interface MutantResult {
  /** The file of a line, or the name of a mutant of the suite. */
  readonly name: string;
  readonly kind: 'line' | 'suite';
  readonly backend: BackendKind;
  readonly says: string;
  /** How many schedules it took to find it; `undefined`: it was not found. */
  readonly foundAfter: number | undefined;
  /** Of docs/spec.md, which it broke first. */
  readonly clause: string | undefined;
  /** Why it is not expected to be found. */
  readonly unseen: string | undefined;
  /** Of a mutant of the suite: its file. */
  readonly group?: string;
}

/** What `npm run simulate -- --mutants --json FILE` writes. */
export interface MutantsReport {
  readonly seed: number;
  /** After how many each mutant was given up. */
  readonly schedules: number;
  readonly mutants: readonly MutantResult[];
  /** How many of them the simulation can see. */
  readonly visible: number;
  readonly found: number;
}

interface Candidate extends Pick<MutantResult, 'name' | 'kind' | 'backend' | 'says' | 'unseen' | 'group'> {
  readonly planted: PlantedErrors;
}

export interface MutantOptions {
  readonly seed: number;
  /** Each mutant is given up after so many. */
  readonly schedules: number;
  /** Part of the name, the file or the line. */
  readonly only?: string;
}

export const lineMutants = [
  ...redisFragmentMutants,
  ...redisScriptMutants,
  ...redisAdapterMutants,
  ...rulesMutants,
  ...coreMutants,
  ...mysqlMutants,
];

function candidates(): readonly Candidate[] {
  const lines = lineMutants.map(({ backend, change, says, unseen }): Candidate => {
    const { file } = change;
    return { name: file, kind: 'line', backend, says, unseen, planted: { changes: [change] } };
  });
  const ofTheSuite = suiteMutants.map(
    ({ name, says, unseen, group }): Candidate => ({
      name,
      group,
      kind: 'suite',
      backend: 'rules',
      says,
      unseen,
      planted: { mutant: name },
    }),
  );
  return [...lines, ...ofTheSuite];
}

/** Runs each mutant until a schedule breaks a promise, and tells of each as soon as it is known. */
export async function runMutants(
  { seed, schedules, only = '' }: MutantOptions,
  tell: (result: MutantResult) => void,
): Promise<MutantsReport> {
  const results: MutantResult[] = [];
  const chosen = candidates().filter(({ name, says, kind }) => `${kind} ${name} ${says}`.includes(only));
  for (const { planted, ...mutant } of chosen) {
    const found = await judge(mutant.backend, planted, seed, schedules);
    const result = { ...mutant, ...found };
    results.push(result);
    tell(result);
  }
  const visible = results.filter(
    ({ foundAfter, unseen }) => foundAfter !== undefined || unseen === undefined,
  );
  const found = results.filter(({ foundAfter }) => foundAfter !== undefined).length;
  return { seed, schedules, mutants: results, visible: visible.length, found };
}

async function judge(
  backend: BackendKind,
  planted: PlantedErrors,
  seed: number,
  schedules: number,
): Promise<Pick<MutantResult, 'foundAfter' | 'clause'>> {
  const code = await LockCode.load(backend, planted);
  for (let done = 0; done < schedules; done += 1) {
    const { violations } = await new Simulation(code, drawPlan(backend, seed + done)).run();
    const [first] = violations;
    if (first === undefined) continue;
    const unchanged = await new Simulation(await soundCode(backend), drawPlan(backend, seed + done)).run();
    if (unchanged.violations.length > 0)
      throw new Error(`${backend}: seed ${seed + done} fails without any error`);
    return { foundAfter: done + 1, clause: first.clause };
  }
  return { foundAfter: undefined, clause: undefined };
}

const soundCodes = new Map<BackendKind, Promise<LockCode>>();

/** The code as it is: a schedule that it fails too shows nothing. */
function soundCode(backend: BackendKind): Promise<LockCode> {
  const code = soundCodes.get(backend) ?? LockCode.load(backend);
  soundCodes.set(backend, code);
  return code;
}
