import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** What this step reads of `SimulationReport`. */
interface Report {
  readonly schedules: number;
  readonly seconds: number;
  readonly violations: readonly unknown[];
}

/**
 * The same schedules on every machine: among some 10 000 others there is one that shows what docs/simulation.md lists under "Open
 * findings".
 */
const SCHEDULES = { rules: 6_000, quorum: 3_500, redis: 1_800 };
const FIRST_SEED = 1;

/** Core in virtual time (docs/simulation.md): the same schedules each time. */
export const simulationStep: Step = {
  name: 'simulation',
  about: 'schedules with faults in virtual time, the same each time',
  // It never waits, and no result depends on how fast it runs.
  kind: 'static',
  async run() {
    const runs = [];
    for (const [backend, schedules] of Object.entries(SCHEDULES))
      runs.push(await simulate(backend, schedules));
    return resultOf(
      runs,
      runs.map(({ name, note }) => `${name}: ${note}`),
    );
  },
};

async function simulate(backend: string, schedules: number) {
  const file = join(mkdtempSync(join(tmpdir(), 'simulation-')), 'report.json');
  const main = join(root, 'simulation/src/main.ts');
  const options = { '--backend': backend, '--seed': FIRST_SEED, '--schedules': schedules, '--json': file };
  const args = Object.entries(options).flatMap(([name, value]) => [name, String(value)]);
  const { ok, output } = await runCommand('node', [main, ...args]);
  const report = readReport(file);
  const note =
    report === undefined ? 'no report' : `${report.schedules} schedules in ${report.seconds.toFixed(1)} s`;
  // A run that wrote nothing, or did nothing, has shown nothing.
  const passed =
    ok && report !== undefined && report.schedules === schedules && report.violations.length === 0;
  return { name: backend, note, problem: passed ? undefined : output };
}

function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}
