import { LockCode, type PlantedErrors } from '../process/lock-code.ts';
import type { BackendKind } from '../workload/plan.ts';
import { cohortMutants } from './cohort-lines.ts';
import { coreMutants } from './core-lines.ts';
import { judgeMutant, type UnprovokedViolation } from './judge-mutant.ts';
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
  /** Schedules that break a promise without any error: they show nothing of a mutant, and something of the sources or of a check. */
  readonly unprovoked: readonly UnprovokedViolation[];
}

/** So many show that a mutant which cannot be seen is not easily seen all the same. */
const UNSEEN_SCHEDULES = 500;

interface Candidate extends Pick<MutantResult, 'name' | 'kind' | 'backend' | 'says' | 'unseen' | 'group'> {
  readonly planted: PlantedErrors;
}

export interface MutantOptions {
  readonly seed: number;
  /** Each mutant is given up after so many. */
  readonly schedules: number;
  /** Part of the name, the file or the line. */
  readonly only?: string;
  /** Every so many mutants one is run, from that on with this index: several processes share the work. */
  readonly share?: { readonly index: number; readonly of: number };
}

export const lineMutants = [
  ...redisFragmentMutants,
  ...redisScriptMutants,
  ...redisAdapterMutants,
  ...rulesMutants,
  ...coreMutants,
  ...cohortMutants,
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
  { seed, schedules, only = '', share = { index: 0, of: 1 } }: MutantOptions,
  tell: (result: MutantResult) => void,
): Promise<MutantsReport> {
  const results: MutantResult[] = [];
  const chosen = candidates()
    .filter(({ name, says, kind }) => `${kind} ${name} ${says}`.includes(only))
    .filter((_, at) => at % share.of === share.index);
  const allUnprovoked = new Map<string, UnprovokedViolation>();
  for (const { planted, ...mutant } of chosen) {
    const { backend } = mutant;
    const codes = { mutated: await LockCode.load(backend, planted), sound: await soundCode(backend) };
    const most = mutant.unseen === undefined ? schedules : Math.min(schedules, UNSEEN_SCHEDULES);
    const { foundAfter, clause, unprovoked } = await judgeMutant(codes, backend, seed, most);
    for (const violation of unprovoked) allUnprovoked.set(`${backend} ${violation.seed}`, violation);
    const result = { ...mutant, foundAfter, clause };
    results.push(result);
    tell(result);
  }
  const visible = results.filter(
    ({ foundAfter, unseen }) => foundAfter !== undefined || unseen === undefined,
  );
  const found = results.filter(({ foundAfter }) => foundAfter !== undefined).length;
  const counts = { visible: visible.length, found };
  return { seed, schedules, mutants: results, ...counts, unprovoked: [...allUnprovoked.values()] };
}

const soundCodes = new Map<BackendKind, Promise<LockCode>>();

/** The code as it is: a schedule that it fails too shows nothing. */
function soundCode(backend: BackendKind): Promise<LockCode> {
  const code = soundCodes.get(backend) ?? LockCode.load(backend);
  soundCodes.set(backend, code);
  return code;
}
