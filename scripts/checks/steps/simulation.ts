import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** What this step reads of `SimulationReport`. */
interface Report {
  readonly seed: number;
  readonly schedules: number;
  readonly seconds: number;
  readonly violations: readonly unknown[];
}

/** The same schedules on every machine. */
const SCHEDULES = { rules: 5_500, quorum: 2_000, redis: 1_500, mysql: 1_000 };
const FIRST_SEED = 1;
/** For so long each backend runs schedules that were never run before. */
const FRESH_SECONDS: Readonly<Record<keyof typeof SCHEDULES, number>> = {
  rules: 4,
  quorum: 4,
  redis: 5,
  mysql: 2,
};

/** Core in virtual time (docs/simulation.md): the same schedules each time, and others. */
export const simulationStep: Step = {
  name: 'simulation',
  about:
    'schedules with faults in virtual time: the same each time, and 15 s of fresh ones, whose seeds it prints',
  // It never waits, and no result depends on how fast it runs.
  kind: 'static',
  async run() {
    const runs = [];
    for (const backend of Object.keys(SCHEDULES) as (keyof typeof SCHEDULES)[]) {
      const schedules = SCHEDULES[backend];
      runs.push(await simulate(backend, { '--seed': FIRST_SEED, '--schedules': schedules }, schedules));
      runs.push(await simulate(backend, { '--seconds': FRESH_SECONDS[backend] }, 1));
    }
    return resultOf(
      runs,
      runs.map(({ name, note }) => `${name}: ${note}`),
    );
  },
};

/** @param least - a run with fewer schedules has shown nothing */
async function simulate(backend: string, which: Readonly<Record<string, number>>, least: number) {
  const file = join(mkdtempSync(join(tmpdir(), 'simulation-')), 'report.json');
  const main = join(root, 'simulation/src/main.ts');
  const options = { '--backend': backend, ...which, '--json': file };
  const args = Object.entries(options).flatMap(([name, value]) => [name, String(value)]);
  const { ok, output } = await runCommand('node', [main, ...args]);
  const report = readReport(file);
  const note =
    report === undefined
      ? 'no report'
      : `${report.schedules} schedules from seed ${report.seed} in ${report.seconds.toFixed(1)} s`;
  // The output of a run that failed has the seed, and the command that replays it.
  const passed = ok && report !== undefined && report.schedules >= least && report.violations.length === 0;
  return { name: backend, note, problem: passed ? undefined : output };
}

function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}
