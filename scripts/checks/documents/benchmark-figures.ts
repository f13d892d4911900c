import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';

const FIGURE = /(<!-- figure ([^,]+), ([^>]+?), ([^,>]+), ([^,>]+) -->)[^]*?(<!-- end -->)/g;

/** The tables of a suite. `npm test -- generated` compares them with `benchmarks/results/SUITE.json`. */
export function benchmarkTables(suite: string): string {
  return readFileSync(join(root, `benchmarks/tables/${suite}.md`), 'utf8');
}

/**
 * A cell of a benchmark's tables: `figureIn(tables, 'After a killed holder', '@locks/mysql', 'p50 ms')`.
 *
 * @param section - what its heading begins with, or all of it where several begin so
 */
export function figureIn(tables: string, section: string, row: string, column: string): string {
  const headings = tables.split(/^## /m).slice(1);
  const text =
    headings.find((one) => one.startsWith(`${section}\n`)) ?? headings.find((one) => one.startsWith(section));
  const lines = text?.split('\n').filter((line) => line.startsWith('|')) ?? [];
  const cells = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const at = cells[0]?.indexOf(column) ?? -1;
  const value = cells.find(([name]) => name?.replace(/ \*$/, '') === row)?.[at];
  if (at < 1 || value === undefined) throw new Error(`no figure ${section}, ${row}, ${column}`);
  return value;
}

/** The document with the present figures of the benchmarks that it names: `<!-- figure SUITE, SECTION, ROW, COLUMN -->4.4<!-- end -->`. */
export function withFigures(document: string, tablesOf: (suite: string) => string = benchmarkTables): string {
  return document.replace(
    FIGURE,
    (_, start: string, suite: string, section: string, row: string, column: string, end: string) =>
      start + figureIn(tablesOf(suite), section, row, column) + end,
  );
}
