// Own code: turbo tells a failure where it happens, without the command that repeats it, and a run that is stopped says nothing of the rest.
import type { StepFailure, StepReport } from './step.ts';

/** What a signal left undone. */
interface Unfinished {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
}

const shownLines = 250;
const shownFailures = 50;

/** The report at the end of a step: its line and notes, and, when it failed, the output of the tools. */
export function describe(report: StepReport): string {
  const lines = [lineOf(report), ...(report.notes ?? []).map((note) => `    ${note}`)];
  const output = report.again ? failuresIn(report.output) : report.output;
  if (report.outcome !== 'ok' && output.trim() !== '') lines.push(indent(lastLines(output.trim())));
  if (report.again) lines.push('    repeated alone later');
  return lines.join('\n');
}

/** The table at the end, what a signal left undone, what failed, and the line `N passed, N failed`. */
export function summarise(
  reports: readonly StepReport[],
  seconds: number,
  stolen: number,
  { running, waiting }: Unfinished = { running: [], waiting: [] },
): string {
  const passed = sum(reports.map((report) => report.passed));
  const failed = sum(reports.map((report) => report.failed));
  const skipped = sum(reports.map((report) => report.skipped ?? 0));
  const processorSeconds =
    sum(reports.map((report) => report.processorSeconds ?? 0)) + secondsOfThisProcess();
  const onlyAlone = reports.flatMap((report) => report.onlyAlone ?? []);
  const failures = reports.flatMap(failuresOf);
  const planned = reports.length + running.length + waiting.length;
  const ended = planned > reports.length ? `${reports.length} of ${planned}` : planned;
  const notRun = reports.filter((report) => report.outcome === 'not run').map((report) => report.name);
  return [
    '',
    ...reports.map(lineOf),
    '',
    `${ended} steps in ${seconds.toFixed(0)} s; ${skipped} tests skipped`,
    `processors were busy for ${processorSeconds.toFixed(0)} s`,
    `the host of this machine took ${(100 * stolen).toFixed(0)} % of its processors away`,
    ...(onlyAlone.length > 0 ? ['failed beside others and passed alone, a bug to find:'] : []),
    ...onlyAlone.map((test) => `  ${test}`),
    ...(running.length > 0 ? [`stopped: ${running.join(', ')}`] : []),
    ...(waiting.length > 0 ? [`not begun: ${waiting.join(', ')}`] : []),
    ...(notRun.length > 0 ? [`not run: ${notRun.join(', ')}`] : []),
    ...(failures.length > 0 ? ['failed, each with the command that repeats it:'] : []),
    ...failures.slice(0, shownFailures),
    `${passed} passed, ${failed} failed`,
  ].join('\n');
}

function failuresOf({ name, outcome, failures = [], output }: StepReport): string[] {
  if (outcome !== 'failed') return [];
  const [says = ''] = output.trim().split('\n', 1);
  const told: readonly StepFailure[] = failures.length > 0 ? failures : [{ says }];
  const isStep = !name.startsWith('servers:');
  return told.map((failure) => {
    const command = ['npm test --', name, ...argumentsOf(failure)].join(' ');
    return [`  ${name}: ${failure.says}`, ...(isStep ? [`      ${command}`] : [])].join('\n');
  });
}

function argumentsOf({ repeat }: StepFailure): string[] {
  return repeat ? ['--', ...repeat.map((word) => (/^[\w./-]+$/.test(word) ? word : quoted(word)))] : [];
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Some steps do their work here, without a command: `size`, `layers`, `words`. */
function secondsOfThisProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function lineOf({
  name,
  seconds,
  processorSeconds,
  outcome,
  passed,
  failed,
  skipped,
  onlyAlone,
}: StepReport): string {
  const counts = [
    `${passed} passed`,
    ...(onlyAlone ? [`${onlyAlone.length} of them only alone`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped ? [`${skipped} skipped`] : []),
  ];
  const busy = (processorSeconds ?? 0).toFixed(1).padStart(6);
  return `${outcome.padEnd(8)} ${name.padEnd(24)} ${seconds.toFixed(1).padStart(6)} s, busy ${busy} s  ${counts.join(', ')}`;
}

/** The failed tests at the end of vitest's output: tests that pass when they are repeated need not fill the log. */
function failuresIn(output: string): string {
  const at = output.indexOf('Failed Tests');
  return at < 0 ? output : output.slice(output.lastIndexOf('\n', at));
}

function lastLines(text: string): string {
  const lines = text.split('\n');
  if (lines.length <= shownLines) return text;
  return [`(${lines.length - shownLines} lines before)`, ...lines.slice(-shownLines)].join('\n');
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
