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

const BACKENDS = ['rules', 'quorum', 'redis'];
const FIXED = { seed: 1, seconds: 7 };
/** Some of 10 000 schedules on Redis and on a quorum show what docs/simulation.md lists under "Open findings". */
const FRESH = { backends: ['rules'], seconds: 9 };

/** Core in virtual time (docs/simulation.md): the same schedules each time, and others. */
export const simulationStep: Step = {
  name: 'simulation',
  about: 'schedules with faults in virtual time: fixed seeds for 21 s, fresh ones of the rules for 9 s',
  // It never waits, and no result depends on how fast it runs.
  kind: 'static',
  async run() {
    const fresh = Math.floor(Math.random() * 2 ** 31);
    const runs = [];
    for (const backend of BACKENDS) {
      runs.push(await simulate(backend, FIXED.seed, FIXED.seconds));
    }
    for (const backend of FRESH.backends) runs.push(await simulate(backend, fresh, FRESH.seconds));
    return resultOf(
      runs,
      runs.map(({ name, note }) => `${name}: ${note}`),
    );
  },
};

async function simulate(backend: string, seed: number, seconds: number) {
  const file = join(mkdtempSync(join(tmpdir(), 'simulation-')), 'report.json');
  const main = join(root, 'simulation/src/main.ts');
  const options = { '--backend': backend, '--seed': seed, '--seconds': seconds, '--json': file };
  const args = Object.entries(options).flatMap(([name, value]) => [name, String(value)]);
  const { ok, output } = await runCommand('node', [main, ...args]);
  const report = readReport(file);
  const note =
    report === undefined ? 'no report' : `${report.schedules} schedules in ${report.seconds.toFixed(1)} s`;
  // A run that wrote nothing, or did nothing, has shown nothing.
  const passed = ok && report !== undefined && report.schedules > 0 && report.violations.length === 0;
  return { name: `${backend} from seed ${seed}`, note, problem: passed ? undefined : output };
}

function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}
