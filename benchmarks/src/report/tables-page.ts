import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

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
