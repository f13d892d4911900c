import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { changedSince, type Code } from '../measure/code.ts';
import { problemsOfSizingPage, writeSizingPage } from '../sizing/page.ts';
import { type Chart, pictureLink } from './chart.ts';
import { chartSvg, figureText } from './chart-svg.ts';
import { isNoisy, type ReportHead } from './head.ts';
import { readTables, type Section } from './report.ts';
import { markdownTable } from './table.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The documents that show some of the pictures. */
const DOCUMENTS = ['README.md', 'languages.md'];
const RUNS = /(?<=<!-- runs: written with --readme -->\n\n)[^]*?(?=\n\n<!-- end of runs -->)/;

/** What `results/SUITE.json` has: when the suite was measured, and the figures of its pictures. */
interface Results {
  readonly suite: string;
  /** `2026-11-24`. */
  readonly date: string;
  readonly rounds: number;
  /** Of the machine, before the start. */
  readonly load: number;
  readonly source: string;
  /** What was measured of this repository; absent in results of before. */
  readonly code?: Code;
  readonly seconds?: Readonly<Record<string, number>>;
  readonly charts: readonly Chart[];
  readonly figures?: unknown;
}

/**
 * Keeps the figures of a report's charts, and draws them. Pictures of rows that this report does not have are removed. The README tells when
 * each suite was measured.
 */
export function writeResults(head: ReportHead, sections: readonly Section[]): void {
  const charts = sections.flatMap(({ chart }) => chart ?? []);
  const results: Results = {
    suite: head.suite,
    date: head.date.slice(0, 10),
    rounds: head.settings.rounds,
    load: head.machine.load,
    source: sourceOf(head, charts),
    ...(head.code && { code: head.code }),
    ...(head.seconds && { seconds: head.seconds }),
    charts,
    ...(head.figures !== undefined && { figures: head.figures }),
  };
  mkdirSync(join(root, 'results'), { recursive: true });
  writeFileSync(join(root, `results/${head.suite}.json`), `${JSON.stringify(results, undefined, 2)}\n`);
  writePictures();
}

/** Draws all results, removes other pictures, lists the runs in the README, and writes the tables of docs/sizing.md. */
export function writePictures(): void {
  mkdirSync(join(root, 'pictures'), { recursive: true });
  const all = readResults();
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  writeFileSync(
    join(root, 'README.md'),
    readme.replace(RUNS, () => runsTable(all)),
  );
  const pictures = picturesOf(all);
  for (const file of otherFiles(pictures)) rmSync(join(root, file));
  for (const [file, text] of pictures) writeFileSync(join(root, file), text);
  writeSizingPage();
}

/** Where pictures differ from the results, and documents from either. */
export function problemsOfPictures(): string[] {
  const all = readResults();
  const pictures = picturesOf(all);
  const stale = [...pictures]
    .filter(
      ([file, text]) => !existsSync(join(root, file)) || readFileSync(join(root, file), 'utf8') !== text,
    )
    .map(([file]) => `${file} is not what its results say: run npm run update`);
  return [
    ...stale,
    ...otherFiles(pictures).map((file) => `${file} has no results`),
    ...all.flatMap(problemsOfTables),
    ...DOCUMENTS.flatMap((file) => problemsOfDocument(file, all)),
    ...problemsOfSizingPage(),
  ];
}

/** The page of tables is of the same run, and has the same figures as the pictures. */
function problemsOfTables({ suite, date, load, charts }: Results): string[] {
  const page = `tables/${suite}.md`;
  if (!existsSync(join(root, page))) return [`${page} does not exist`];
  const tables = readTables(suite);
  const head = [`\n- ${date}, `, `load before the start ${load.toFixed(2)}`];
  return [
    ...head
      .filter((part) => !tables.includes(part))
      .map((part) => `${page} is of another run: no ${JSON.stringify(part)}`),
    ...charts.flatMap((chart) => problemsOfChart(suite, chart, tables)),
  ];
}

/** The table below the picture has the same contenders with the same figures. */
function problemsOfChart(suite: string, chart: Chart, tables: string): string[] {
  const link = pictureLink(suite, chart, '../pictures');
  const at = tables.indexOf(link);
  if (at < 0) return [`tables/${suite}.md does not show ${link}`];
  if (chart.kind !== 'bars') return [];
  const [table = ''] = /(?:^\|.*\n?)+/m.exec(tables.slice(at)) ?? [];
  const rows = table.split('\n').map((row) => row.split('|').map((cell) => cell.trim()));
  return chart.bars
    .filter(({ name, median }) => {
      const row = rows.find(([, label]) => label?.replace(/ \*$/, '') === name);
      return row?.includes(figureText(chart, median)) !== true;
    })
    .map(({ name }) => `${suite}, ${chart.id}: the table below the picture has another figure of ${name}`);
}

/** A document shows only pictures that exist, and the README lists the runs. */
function problemsOfDocument(file: string, all: readonly Results[]): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const links = all.flatMap(({ suite, charts }) =>
    charts.map((chart) => pictureLink(suite, chart, 'pictures')),
  );
  const shown = text.match(/!\[[^\]]*\]\(pictures\/[^)]*\)/g) ?? [];
  const problems = shown
    .filter((link) => !links.includes(link))
    .map((link) => `${file} shows ${link}, which has no results`);
  const isStale = file === 'README.md' && RUNS.exec(text)?.[0] !== runsTable(all);
  return isStale ? [...problems, `${file} lists other runs: run npm run update`] : problems;
}

function runsTable(all: readonly Results[]): string {
  return markdownTable({
    heading: ['tables of', 'measured', 'rounds', 'minutes', 'load before the start', 'the code since then'],
    lines: all.map(({ suite, date, rounds, load, seconds, code }) => [
      `[${suite}](tables/${suite}.md)`,
      date,
      String(rounds),
      seconds === undefined ? '' : String(Math.ceil(total(seconds) / 60)),
      load.toFixed(2),
      codeText(code),
    ]),
  });
}

/** Whether figures are those of the present code. */
function codeText(code: Code | undefined): string {
  if (code === undefined) return '**changed**';
  const changed = changedSince(code).map((name) => name.replace('@locks/', ''));
  return changed.length === 0 ? 'the same' : `**changed**: ${changed.join(', ')}`;
}

/** How long a whole run of a suite takes, as its last published run did: in seconds, by row. */
export function lastRunOf(suite: string): Pick<Results, 'date' | 'rounds' | 'seconds'> | undefined {
  return readResults().find((one) => one.suite === suite);
}

export function total(seconds: Readonly<Record<string, number>>): number {
  return Object.values(seconds).reduce((sum, each) => sum + each, 0);
}

function readResults(): Results[] {
  const folder = join(root, 'results');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Results);
}

function picturesOf(all: readonly Results[]): ReadonlyMap<string, string> {
  return new Map(
    all.flatMap(({ suite, source, charts }) =>
      charts.map((chart) => {
        const name = `${suite}-${chart.id}`;
        return [`pictures/${name}.svg`, chartSvg(name, chart, source)] as const;
      }),
    ),
  );
}

function otherFiles(pictures: ReadonlyMap<string, string>): string[] {
  const folder = join(root, 'pictures');
  const files = existsSync(folder) ? readdirSync(folder).map((file) => `pictures/${file}`) : [];
  return files.filter((file) => !pictures.has(file));
}

function sourceOf({ date, machine, settings }: ReportHead, charts: readonly Chart[]): string {
  const hasSpread = charts.some(
    (chart) => chart.kind === 'bars' && chart.bars.some(({ least }) => least !== undefined),
  );
  const medians = `medians of ${settings.rounds} rounds${hasSpread ? ', least to most' : ''}`;
  const rounds = settings.rounds > 1 ? medians : '1 round';
  const doubts = [
    ...(isNoisy(machine) ? [`load before the start ${machine.load.toFixed(2)}`] : []),
    ...(settings.quick ? ['QUICK'] : []),
  ];
  return [date.slice(0, 10), `${machine.cpu}, ${machine.cores} cores`, rounds, ...doubts].join('; ');
}
