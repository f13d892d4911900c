import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Contender } from './contenders/contender.ts';
import { Checkpoint } from './conduct/checkpoint.ts';
import { Run } from './conduct/run.ts';
import { codeOf, ownPackages } from './measure/code.ts';
import { untilQuiet } from './measure/quiet.ts';
import type { ReportHead } from './report/head.ts';
import { lastRunOf, total, writeResults } from './report/pictures.ts';
import { renderMarkdown, renderPlain, type Section, type Target, writeTables } from './report/report.ts';
import type { SettingsOptions } from './suites/settings.ts';

/** Which rows, and who takes part. */
export interface Selection<C> {
  readonly rows: ReadonlySet<string>;
  readonly contenders: readonly C[];
}

/** What a suite is, for the command line. */
export interface Suite<R extends ReportHead, C extends { readonly name: string }> {
  readonly name: string;
  readonly rows: readonly string[];
  /** The option that chooses who takes part. @defaultValue `contender` */
  readonly chosenBy?: 'language';
  contenders(): Promise<readonly C[]>;
  /** Runs each part of it by `run.progress.part`. */
  measure(options: SettingsOptions, selection: Selection<C>, run: Run): Promise<R>;
  sectionsOf(report: R): Section[];
  /** Every figure that has a target, as far as its row was measured. */
  judge(report: R): Target[];
}

/** No suite may take longer, on a slow machine too. */
const SUITE_LIMIT_MS = 20 * 60_000;

const options = {
  only: { type: 'string', multiple: true },
  contender: { type: 'string', multiple: true },
  language: { type: 'string', multiple: true },
  rounds: { type: 'string' },
  quick: { type: 'boolean', default: false },
  resume: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  strict: { type: 'boolean', default: false },
  json: { type: 'string' },
  from: { type: 'string' },
  markdown: { type: 'boolean', default: false },
  readme: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Does what the arguments of a suite ask for, and gives the exit code. */
export async function runSuite<R extends ReportHead, C extends { readonly name: string } = Contender>(
  suite: Suite<R, C>,
  args: readonly string[],
): Promise<number> {
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) {
    console.log(await usageOf(suite));
    return 0;
  }
  const report =
    values.from === undefined
      ? await measure(suite, values)
      : (JSON.parse(readFileSync(values.from, 'utf8')) as R);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
  const sections = suite.sectionsOf(report);
  const targets = suite.judge(report);
  const markdown = renderMarkdown(report, sections, targets);
  const absent = report.absent ?? [];
  if (values.readme && absent.length === 0) {
    writeTables(suite.name, markdown);
    writeResults(report, sections);
  }
  for (const each of absent) console.log(`ABSENT: ${each}\n`);
  console.log(values.markdown ? markdown : renderPlain(report, sections, values.check ? targets : []));
  if (values.readme && absent.length > 0) {
    console.error('Not published: a part of the suite is absent.');
    return 1;
  }
  if ((report.failures ?? []).length > 0) return 1;
  return values.strict && targets.some(({ reached }) => !reached) ? 1 : 0;
}

interface Wishes {
  readonly readme: boolean;
  readonly only?: readonly string[];
  readonly contender?: readonly string[];
  readonly language?: readonly string[];
  readonly rounds?: string;
  readonly quick: boolean;
  readonly resume: boolean;
}

async function measure<R extends ReportHead, C extends { readonly name: string }>(
  suite: Suite<R, C>,
  wishes: Wishes,
): Promise<R> {
  const rounds = wishes.rounds === undefined ? undefined : wholeNumber(wishes.rounds);
  const rows = new Set((wishes.only ?? suite.rows).map((row) => oneOf(suite.rows, 'row', row)));
  const all = await suite.contenders();
  const names = all.map(({ name }) => name);
  const by = suite.chosenBy ?? 'contender';
  const wanted = wishes[by]?.map((name) => oneOf(names, by, name));
  const contenders = wanted === undefined ? all : all.filter(({ name }) => wanted.includes(name));
  const isWhole = !wishes.quick && wishes.only === undefined && wanted === undefined;
  if (wishes.readme && !isWhole) {
    throw new Error('--readme publishes whole suites only: leave out --quick, --only and --contender.');
  }
  const say = (text: string): void => console.error(text);
  const asked = {
    rows: [...rows],
    contenders: contenders.map(({ name }) => name),
    rounds,
    quick: wishes.quick,
    code: codeOf(ownPackages()),
  };
  const checkpoint = wishes.resume
    ? Checkpoint.resume(suite.name, asked)
    : Checkpoint.begin(suite.name, asked);
  const partsLeft = wishes.resume ? 0 : Checkpoint.partsLeft(suite.name);
  if (partsLeft > 0) say(`A run of ${suite.name} broke off after ${partsLeft} parts: --resume continues it.`);
  const isQuiet = wishes.quick || (await untilQuiet(say));
  if (wishes.readme && !isQuiet) {
    throw new Error(
      'Figures of a busy machine are not published: stop what else runs here, or leave out --readme.',
    );
  }
  say(durationText(suite.name, { ...wishes, rounds }));
  const limit = setTimeout(() => {
    console.error(
      `bench ${suite.name} did not end within ${SUITE_LIMIT_MS / 60_000} minutes: --resume continues it.`,
    );
    // Ends servers and client processes too.
    process.exit(1);
  }, SUITE_LIMIT_MS);
  try {
    const run = new Run(say, checkpoint);
    const report = await suite.measure({ quick: wishes.quick, rounds }, { rows, contenders }, run);
    if (run.progress.failures.length === 0) checkpoint.end();
    return report;
  } finally {
    clearTimeout(limit);
  }
}

/** How long the run will take, judged by the last published one. */
function durationText(
  suite: string,
  { only, quick, rounds }: Pick<Wishes, 'only' | 'quick'> & { readonly rounds: number | undefined },
): string {
  const last = lastRunOf(suite);
  if (quick || last?.seconds === undefined) return `bench ${suite}: 20 minutes at most`;
  const { date, seconds } = last;
  const chosen = Object.entries(seconds).filter(([row]) => only?.includes(row) ?? true);
  const estimate = total(Object.fromEntries(chosen)) || total(seconds);
  const minutes = Math.ceil((estimate * (rounds ?? last.rounds)) / last.rounds / 60);
  return `bench ${suite}: about ${minutes} minute${minutes === 1 ? '' : 's'}, as on ${date}`;
}

async function usageOf(
  suite: Pick<Suite<never, { name: string }>, 'name' | 'rows' | 'chosenBy' | 'contenders'>,
) {
  const contenders = (await suite.contenders()).map(({ name }) => name);
  const by = suite.chosenBy ?? 'contender';
  return `usage: bench ${suite.name} [options]
  --only ROW      only this row, may be repeated: ${suite.rows.join(', ')}
  ${`--${by} C`.padEnd(16)}only this one, may be repeated; the floor of a contender must be among them for ratios:
                  ${contenders.join(', ')}
  --rounds N      rounds of each comparison; default 3
  --quick         short blocks and two rounds: to see that it runs
  --resume        continues the run with the same options that broke off
  --check         also compares with what is asked for, reached or not
  --strict        with --check: exit code 1 when something is not reached
  --json FILE     writes all figures
  --from FILE     shows figures written by --json; measures nothing
  --markdown      prints the tables as Markdown
  --readme        writes the tables into benchmarks/tables/${suite.name}.md, their figures into benchmarks/results,
                  their pictures into benchmarks/pictures, and the date and load into benchmarks/README.md;
                  refused where something else runs on this machine after a wait of two minutes, or a part is absent`;
}

function oneOf(known: readonly string[], what: string, name: string): string {
  if (known.includes(name)) return name;
  throw new Error(`There is no ${what} ${JSON.stringify(name)}. Use ${known.join(', ')}.`);
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--rounds ${text}: use a whole number from 1.`);
  return value;
}
