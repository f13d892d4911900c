// Own code: turbo keeps no times of tasks from which the rest could be estimated.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from '../launcher/root.mjs';
import type { Step, StepReport } from './step.ts';

/** How long a step took, and for how long it kept processors busy, in seconds. */
interface Duration {
  readonly seconds: number;
  readonly busy: number;
}

type Durations = Readonly<Record<string, Duration>>;

/** Of a machine with two cores: `npm run test:all`, then copy the other file here. The present figures are of one that others used too. */
const COMMITTED = join(root, 'scripts/checks/durations.json');
/** Of the last runs on this machine. */
const OWN = join(root, '.tools/durations.json');

/** Of a step that never ran. */
const UNKNOWN: Duration = { seconds: 10, busy: 5 };

const known: Durations = { ...read(COMMITTED), ...read(OWN) };

/** The longest first, so that none is left for the end. */
export function longestFirst(steps: readonly Step[]): Step[] {
  return steps.toSorted((a, b) => durationOf(b).seconds - durationOf(a).seconds);
}

/** For how many seconds these steps run, `lanes` of the timed ones at once. */
export function secondsOf(steps: readonly Pick<Step, 'name' | 'kind'>[], lanes: number): number {
  const of = (kind: Step['kind'], what: keyof Duration) =>
    steps.filter((step) => step.kind === kind).map((step) => durationOf(step)[what]);
  const busy = steps.map((step) => durationOf(step).busy);
  const timed = of('timed', 'seconds');
  return Math.max(
    Math.max(0, ...timed, sum(timed) / lanes) + sum(of('alone', 'seconds')),
    sum(busy) / availableParallelism(),
  );
}

/** Keeps how long the steps took, for the next estimate. */
export function keep(reports: readonly StepReport[]): void {
  const now = reports
    .filter(({ outcome }) => outcome === 'ok')
    .map(({ name, seconds, processorSeconds = 0 }) => [
      name,
      { seconds: rounded(seconds), busy: rounded(processorSeconds) },
    ]);
  const all = Object.entries<Duration>({ ...read(OWN), ...Object.fromEntries(now) });
  const lines = all.map(
    ([name, { seconds, busy }]) => `  ${JSON.stringify(name)}: { "seconds": ${seconds}, "busy": ${busy} }`,
  );
  mkdirSync(dirname(OWN), { recursive: true });
  writeFileSync(OWN, `{\n${lines.join(',\n')}\n}\n`);
}

function durationOf({ name }: Pick<Step, 'name'>): Duration {
  return known[name] ?? UNKNOWN;
}

/** Nothing where the file is not there, or another run is writing it. */
function read(file: string): Durations {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Durations;
  } catch {
    return {};
  }
}

function rounded(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
