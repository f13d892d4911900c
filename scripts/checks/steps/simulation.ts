import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const FIRST_SEED = 1;

/** What this step reads of `SimulationReport`. */
interface Report {
  readonly seed: number;
  readonly schedules: number;
  readonly seconds: number;
  readonly violations: readonly unknown[];
}

/** How many schedules run, the same on every machine, and then for how many seconds others that were never run before. */
interface Extent {
  readonly schedules: number;
  readonly freshSeconds: number;
}

type Extents = Readonly<Record<'rules' | 'quorum' | 'redis' | 'mysql', Extent>>;

const SHORT: Extents = {
  rules: { schedules: 1_000, freshSeconds: 1 },
  quorum: { schedules: 500, freshSeconds: 1 },
  redis: { schedules: 300, freshSeconds: 2 },
  mysql: { schedules: 250, freshSeconds: 1 },
};
const LONG: Extents = {
  rules: { schedules: 5_500, freshSeconds: 4 },
  quorum: { schedules: 2_000, freshSeconds: 4 },
  redis: { schedules: 1_500, freshSeconds: 5 },
  mysql: { schedules: 1_000, freshSeconds: 2 },
};

/** Core in virtual time (docs/simulation.md): the same schedules each time, and others. */
export const simulationSteps: readonly Step[] = [
  simulationStep(
    'simulation:short',
    '2 000 schedules with faults in virtual time, and fresh ones for 5 s',
    SHORT,
  ),
  simulationStep('simulation:long', '10 000 schedules, and fresh ones for 15 s, whose seeds it prints', LONG),
];

function simulationStep(name: string, about: string, extents: Extents): Step {
  return {
    name,
    about,
    // It never waits, and no result depends on how fast it runs.
    kind: 'static',
    async run() {
      const runs = [];
      for (const [backend, { schedules, freshSeconds }] of Object.entries(extents)) {
        const fixed = { '--seed': FIRST_SEED, '--schedules': schedules };
        runs.push(await simulate(backend, fixed, schedules));
        runs.push(await simulate(backend, { '--seconds': freshSeconds }, 1));
      }
      return resultOf(
        runs,
        runs.map((one) => `${one.name}: ${one.note}`),
      );
    },
  };
}

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
