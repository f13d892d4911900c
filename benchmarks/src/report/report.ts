import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Chart, pictureLink } from './chart.ts';
import { headLines, type ReportHead } from './head.ts';
import { markdownTable, plainTable, type Table, tableOf } from './table.ts';

/** A part of a report: a table and what it shows. */
export interface Section {
  readonly title: string;
  readonly table: Table;
  /** What to know of it, below the table. */
  readonly note?: string;
  /** What a picture of it shows, above the table. */
  readonly chart?: Chart;
}

/** A figure that was asked for, and what came of it. */
export interface Target {
  readonly row: string;
  readonly contender: string;
  readonly asked: string;
  readonly measured: string;
  readonly reached: boolean;
}

/** For a terminal. */
export function renderPlain(
  head: ReportHead,
  sections: readonly Section[],
  targets: readonly Target[],
): string {
  const parts = withTargets(sections, targets).map(({ title, table, note }) =>
    [title, plainTable(table), ...(note === undefined ? [] : [note])].join('\n\n'),
  );
  return [headLines(head).join('\n'), ...parts].join('\n\n');
}

/** What a suite's page of tables has below its head. */
export function renderMarkdown(
  head: ReportHead,
  sections: readonly Section[],
  targets: readonly Target[],
): string {
  const parts = withTargets(sections, targets).flatMap(({ title, table, note, chart }) => [
    `## ${title}`,
    ...(chart === undefined ? [] : [pictureLink(head.suite, chart, '../pictures')]),
    markdownTable(table),
    ...(note === undefined ? [] : [note]),
  ]);
  const lines = headLines(head).map((line) => `- ${line}`);
  return [lines.join('\n'), ...parts].join('\n\n');
}

function withTargets(sections: readonly Section[], targets: readonly Target[]): readonly Section[] {
  if (targets.length === 0) return sections;
  const table = tableOf(targets, [
    ['row', ({ row }) => row],
    ['adapter', ({ contender }) => contender],
    ['asked', ({ asked }) => asked],
    ['measured', ({ measured }) => measured],
    ['reached', ({ reached }) => (reached ? 'yes' : 'NO')],
  ]);
  return [...sections, { title: 'Targets', table }];
}

const folder = new URL('../../tables/', import.meta.url);

/** The page with every table of a suite. */
function tablesPage(suite: string, markdown: string): string {
  return `<!-- Written by the benchmark of this suite with --readme. Do not edit. -->
# Benchmark tables: ${suite}

[Benchmarks](../${suite === 'languages' ? 'languages' : 'README'}.md) says what is compared, how it is measured and what the columns mean.

${markdown}
`;
}

/** Writes `tables/SUITE.md`. */
export function writeTables(suite: string, markdown: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(tablesFile(suite), tablesPage(suite, markdown));
}

export function readTables(suite: string): string {
  return readFileSync(tablesFile(suite), 'utf8');
}

function tablesFile(suite: string): URL {
  return new URL(`${suite}.md`, folder);
}
