import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../checks/command.ts';
import { root } from '../launcher/root.mjs';
import { largestRun, longRuns, type ModelRun, type PlantedError, plantedErrors, runs } from './runs.ts';
import { inWords, searchModel } from './search.ts';

export interface ModelCheck {
  readonly name: string;
  readonly problem?: string | undefined;
  /** What was searched, and in which time. */
  readonly figure: string;
}

const TRACES = join(root, 'model/planted');
/** Small enough for a short counterexample, and large enough for each of the planted errors. */
const PLANTED_SCOPE: Readonly<Record<ModelRun['search'], ModelRun['defines']>> = {
  states: { PROCESSES: 2, ACQUISITIONS: 2 },
  cycles: { PROCESSES: 2, ACQUISITIONS: 1 },
};

/** The planted error of renewals, which the largest scope has none of otherwise. */
const RENEWAL_ERROR = 4;

/** What the model cannot be checked without here; `undefined` when all is there. Installs Spin where that is allowed. */
export async function missingForModel(): Promise<string | undefined> {
  const installer = join(root, 'test-servers/install.mjs');
  const spin = await runCommand(process.execPath, [installer, 'spin']);
  if (!spin.ok) return spin.output.trim();
  const compiler = await runCommand('gcc', ['--version']);
  if (!compiler.ok) return 'The model needs a C compiler: gcc was not found on the PATH.';
  return undefined;
}

/**
 * Searches the model in every scope, and finds every planted error again.
 *
 * @param full - whether to search the scopes that take minutes too
 * @param writeTraces - whether to write the counterexamples of the planted errors to model/planted
 */
export async function checkModel(
  { full = false, writeTraces = false },
  onCheck: (check: ModelCheck) => void = () => {},
): Promise<readonly ModelCheck[]> {
  const checks: ModelCheck[] = [];
  const tasks = [
    ...(full ? [...runs, ...longRuns] : runs).map((run) => () => searched(run)),
    ...plantedErrors.map((planted) => () => found(planted, writeTraces)),
    ...(full ? plantedErrors.map((planted) => () => foundInLargest(planted)) : []),
    ...(full ? [() => searched(largestRun)] : []),
  ];
  const work = async () => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
      const check = await task();
      checks.push(check);
      onCheck(check);
    }
  };
  await Promise.all([work(), work()]);
  return checks;
}

/** Whether the checker finds a planted error, and its counterexample is kept. */
async function found(
  { number, file, what, search }: PlantedError,
  writeTraces: boolean,
): Promise<ModelCheck> {
  const name = `planted error ${number}: ${what}`;
  const { violation, trace } = await searchModel({ defines: PLANTED_SCOPE[search], search }, number);
  if (violation === undefined) return { name, problem: 'the checker did not find it', figure: 'not found' };
  const path = join(TRACES, `${file}.txt`);
  if (writeTraces) {
    mkdirSync(TRACES, { recursive: true });
    writeFileSync(path, `Planted error ${number}: ${what}.\nFound: ${inWords(violation)}.\n\n${trace}\n`);
  }
  const problem = existsSync(path) ? undefined : `${path} is missing: npm run model -- --write`;
  return { name, problem, figure: 'found' };
}

/** Whether the checker also finds a planted error in the largest scope. */
async function foundInLargest({ number, what, search }: PlantedError): Promise<ModelCheck> {
  const name = `planted error ${number} in the largest scope: ${what}`;
  // An error of renewals needs one.
  const defines = { ...largestRun.defines, RENEWALS: number === RENEWAL_ERROR ? 1 : 0 };
  const { violation, states } = await searchModel({ ...largestRun, defines, search }, number);
  if (violation === undefined) return { name, problem: 'the checker did not find it', figure: 'not found' };
  return { name, figure: `found after ${states} states` };
}

async function searched(run: ModelRun): Promise<ModelCheck> {
  const { violation, states, depth, seconds, trace } = await searchModel(run);
  const figure = `${run.search}: ${states} states, depth ${depth}, ${seconds.toFixed(1)} s`;
  if (violation === undefined) return { name: run.name, figure };
  return { name: run.name, figure, problem: `${inWords(violation)}: ${violation}\n${trace}` };
}
