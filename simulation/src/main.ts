// `simulate [options]`: runs schedules in virtual time, and shows those that break a promise.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FileSchedule } from './files/file-schedule.ts';
import { FileWorkers } from './files/file-workers.ts';
import { runFileSchedules } from './files/run-file-schedules.ts';
import { LockCode } from './process/lock-code.ts';
import type { SourceChange } from './process/source-change.ts';
import { addTo } from './simulation-figures.ts';
import { explain, type FoundViolation, runSchedules, type SimulationReport } from './run-schedules.ts';
import { Simulation } from './simulation.ts';
import { timelineOf } from './timeline.ts';
import { drawPlan } from './workload/draw-plan.ts';
import { BACKEND_KINDS, type PlanVariant } from './workload/plan.ts';

const KINDS = [...BACKEND_KINDS, 'file'] as const;
type Kind = (typeof KINDS)[number];

const USAGE = `usage: simulate [--backend ${KINDS.join('|')}] [--schedules N] [--seconds S] [--seed S] [--json FILE] [--add FILE] [--plant FILE] [--variant transfer|thread]
       simulate [--backend ${KINDS.join('|')}] --replay SEED [--plant FILE] [--variant transfer|thread]
  --backend    what the simulated processes lock with (default: rules); file: the calls of the file system in @locks/file
  --schedules  how many runs, each with the next seed (default: 1000)
  --seconds    begin no run after this time
  --seed       of the first run, from 0 to 4294967295 (default: drawn, and printed)
  --replay     one run, event by event; one that breaks a promise is made smaller first
  --json       write the report to a file
  --add        add the figures of the run to those of a file, as docs/simulation.json
  --plant      change a source first: a file with { "file": below packages/, "from": text, "to": text }
  --variant    transfer: leases go on in other processes at their end; thread: a thread of each process renews its leases
exit code: 0 no promise was broken, 1 one was, 2 wrong usage`;

class WrongUsage extends Error {}

// Errors are made by the thousand here, and nobody reads where.
Error.stackTraceLimit = 0;

try {
  process.exitCode = await main(readArguments());
} catch (error) {
  if (!(error instanceof WrongUsage)) throw error;
  console.error(`${error.message}\n${USAGE}`);
  process.exitCode = 2;
}

type Arguments = ReturnType<typeof readArguments>;

async function main(given: Arguments): Promise<number> {
  const { backend: kind = 'rules', replay } = given;
  if (given.help) {
    console.log(USAGE);
    return 0;
  }
  const backend = KINDS.find((one) => one === kind);
  if (backend === undefined) throw new WrongUsage(`--backend must be one of ${KINDS.join(', ')}`);
  if (backend === 'file' && given.variant !== undefined)
    throw new WrongUsage('--backend file has no variants');
  const changes = given.plant === undefined ? [] : [readChange(given.plant)];
  if (replay !== undefined)
    return replayed(backend, wholeNumber('--replay', replay, 0), changes, variantOf(given.variant));
  return simulated(backend, given, changes);
}

async function simulated(
  backend: Kind,
  { seed, schedules, seconds, json, add, variant }: Arguments,
  changes: readonly SourceChange[],
): Promise<number> {
  const first = seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber('--seed', seed, 0);
  const many = wholeNumber('--schedules', schedules ?? (seconds === undefined ? '1000' : '1000000000'), 1);
  const limit = seconds === undefined ? {} : { seconds: wholeNumber('--seconds', seconds, 1) };
  const asked = { seed: first, schedules: many, planted: changes, ...limit };
  const report =
    backend === 'file'
      ? await runFileSchedules(asked)
      : await runSchedules({ ...asked, backend, variant: variantOf(variant) });
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`);
  if (add !== undefined) addTo(add, report, variantOf(variant));
  for (const violation of report.violations) show(backend, violation, variantOf(variant));
  summarize(report);
  return report.violations.length > 0 ? 1 : 0;
}

function summarize({ backend, seed, schedules, seconds, steps, faults, ...report }: SimulationReport): void {
  const { expected, lateWrites, violations } = report;
  const faulty = Object.values(faults).reduce((sum, count) => sum + count, 0);
  console.log(
    `${backend}: ${schedules} schedules from seed ${seed} in ${seconds.toFixed(1)} s, ` +
      `${steps} events, ${faulty} faults, ${violations.length} violations`,
  );
  for (const one of expected)
    console.log(
      `expected, after a loss of data: ${one.clause} ${one.count} times, first in seed ${one.seed}: ${one.message}`,
    );
  if (lateWrites.late > 0)
    console.log(`writes of former holders: ${lateWrites.late}, stopped by the fence: ${lateWrites.stopped}`);
}

async function replayed(
  backend: Kind,
  seed: number,
  changes: readonly SourceChange[],
  variant: PlanVariant | undefined,
): Promise<number> {
  if (backend === 'file') return replayedFiles(seed, changes);
  const code = await LockCode.load(backend, changes);
  const explained = await explain(code, backend, seed, variant);
  if (explained === undefined) {
    const result = await new Simulation(code, drawPlan(backend, seed, variant), true).run();
    console.log(`${timelineOf(result).join('\n')}\n${backend}: seed ${seed} breaks no promise`);
    return 0;
  }
  show(backend, explained, variant);
  return 1;
}

async function replayedFiles(seed: number, changes: readonly SourceChange[]): Promise<number> {
  using workers = await FileWorkers.load(changes);
  const { violation, timeline } = new FileSchedule(workers, seed, true).run();
  if (violation === undefined) console.log(`${timeline.join('\n')}\nfile: seed ${seed} breaks no promise`);
  else show('file', { seed, ...violation, timeline }, undefined);
  return violation === undefined ? 0 : 1;
}

function show(
  backend: Kind,
  { seed, clause, message, timeline }: FoundViolation,
  variant: PlanVariant | undefined,
): void {
  const option = variant === undefined ? '' : ` --variant ${variant}`;
  console.log(`${timeline.join('\n')}\n${clause} violated: ${message}`);
  console.log(`replay: npm run -s simulate -- --backend ${backend} --replay ${seed}${option}\n`);
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
        add: { type: 'string' },
        replay: { type: 'string' },
        plant: { type: 'string' },
        variant: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error));
  }
}

function variantOf(text: string | undefined): PlanVariant | undefined {
  if (text === undefined || text === 'transfer' || text === 'thread') return text;
  throw new WrongUsage(`--variant must be transfer or thread, not "${text}"`);
}

function readChange(path: string): SourceChange {
  try {
    const { file, from, to } = JSON.parse(readFileSync(path, 'utf8')) as Partial<SourceChange>;
    if (typeof file === 'string' && typeof from === 'string' && typeof to === 'string')
      return { file, from, to };
  } catch (error) {
    throw new WrongUsage(`--plant: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new WrongUsage(`--plant: ${path} needs the texts file, from and to`);
}

function wholeNumber(option: string, text: string, min: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < min || value > 4_294_967_295)
    throw new WrongUsage(`${option} must be a whole number from ${min}, not "${text}"`);
  return value;
}
