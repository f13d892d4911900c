/** Kept results of the suite on versions of servers that the tests do not start, one file a version and backend. */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConformanceReport, Outcome } from '@locks/core/conformance';

const folder = fileURLToPath(new URL('../server-results', import.meta.url));

export interface ServerResult {
  readonly backend: string;
  /** As the server says it: `Redis 8.6.3`. */
  readonly server: string;
  readonly cases: Readonly<Record<string, KeptOutcome>>;
}

export interface KeptOutcome {
  readonly outcome: Outcome;
  readonly reason?: string;
}

/** Keeps the report of a run in which every case passed, does not apply, or is waived. Gives the file. */
export function keepResult({ backend, server, cases }: ConformanceReport, version: string): string {
  const result: ServerResult = {
    backend,
    server: server ?? version,
    cases: Object.fromEntries(
      cases.map(({ id, outcome, reason }) => [id, reason === undefined ? { outcome } : { outcome, reason }]),
    ),
  };
  const file = join(folder, version, `${backend}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
  return file;
}

/** All that are kept: by the name of the server, then its version, then the backend. */
export function keptResults(): ServerResult[] {
  return globSync(join(folder, '*', '*.json'))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as ServerResult)
    .toSorted((a, b) => collator.compare(titleOf(a), titleOf(b)));
}

/** Versions in their order, not in that of their digits. */
const collator = new Intl.Collator('en', { numeric: true });

export function titleOf({ server, backend }: ServerResult): string {
  return `${server}: ${backend}`;
}
