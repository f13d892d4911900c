// `simulate [options]`: runs schedules in virtual time, and shows those that break a promise.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { LockCode } from './process/lock-code.ts';
import { explain, type FoundViolation, runSchedules } from './run-schedules.ts';
import { Simulation } from './simulation.ts';
import { timelineOf } from './timeline.ts';
import { drawPlan } from './workload/draw-plan.ts';
import { BACKEND_KINDS, type BackendKind } from './workload/plan.ts';

const USAGE = `usage: simulate [--backend ${BACKEND_KINDS.join('|')}] [--schedules N] [--seconds S] [--seed S] [--json FILE]
       simulate [--backend ${BACKEND_KINDS.join('|')}] --replay SEED
  --backend    what the simulated processes lock with (default: rules)
  --schedules  how many runs, each with the next seed (default: 1000)
  --seconds    begin no run after this time
  --seed       of the first run, from 0 to 4294967295 (default: drawn, and printed)
  --replay     one run, event by event; one that breaks a promise is made smaller first
  --json       write the report to a file`;

class WrongUsage extends Error {}

// Errors are made by the thousand here, and nobody reads where.
Error.stackTraceLimit = 0;

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof WrongUsage)) throw error;
  console.error(`${error.message}\n${USAGE}`);
  process.exitCode = 2;
}

async function main(): Promise<number> {
  const { backend: kind = 'rules', seed, schedules, seconds, replay, json, help } = readArguments();
  if (help) {
    console.log(USAGE);
    return 0;
  }
  const backend = BACKEND_KINDS.find((one) => one === kind);
  if (backend === undefined) throw new WrongUsage(`--backend must be one of ${BACKEND_KINDS.join(', ')}`);
  if (replay !== undefined) return replayed(backend, wholeNumber('--replay', replay, 0));
  const first = seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber('--seed', seed, 0);
  const many = wholeNumber('--schedules', schedules ?? (seconds === undefined ? '1000' : '1000000000'), 1);
  const limit = seconds === undefined ? {} : { seconds: wholeNumber('--seconds', seconds, 1) };
  const report = await runSchedules({ backend, seed: first, schedules: many, ...limit });
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`);
  for (const violation of report.violations) show(backend, violation);
  const faults = Object.values(report.faults).reduce((sum, count) => sum + count, 0);
  console.log(
    `${backend}: ${report.schedules} schedules from seed ${first} in ${report.seconds.toFixed(1)} s, ` +
      `${report.steps} events, ${faults} faults, ${report.violations.length} violations`,
  );
  return report.violations.length > 0 ? 1 : 0;
}

async function replayed(backend: BackendKind, seed: number): Promise<number> {
  const code = await LockCode.load(backend);
  const [violation] = await explain(code, backend, seed);
  if (violation === undefined) {
    const result = await new Simulation(code, drawPlan(backend, seed), true).run();
    console.log(`${timelineOf(result).join('\n')}\n${backend}: seed ${seed} breaks no promise`);
    return 0;
  }
  show(backend, violation);
  return 1;
}

function show(backend: BackendKind, { seed, clause, message, timeline }: FoundViolation): void {
  console.log(`${timeline.join('\n')}\n${clause} violated: ${message}`);
  console.log(`replay: npm run -s simulate -- --backend ${backend} --replay ${seed}\n`);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        backend: { type: 'string' },
        schedules: { type: 'string' },
        seconds: { type: 'string' },
        seed: { type: 'string' },
        json: { type: 'string' },
        replay: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(option: string, text: string, min: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < min || value > 4_294_967_295)
    throw new WrongUsage(`${option} must be a whole number from ${min}, not "${text}"`);
  return value;
}
