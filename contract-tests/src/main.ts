/**
 * `npm run conformance -- <backend> [--seed N] [--only CASE]… [--server VERSION [--keep]]`: runs the suite on one backend, prints the
 * outcomes and writes the report. The seed of a failure repeats its random choices; `--server valkey-9` takes a version of the server
 * that test-servers/src/server-versions.mjs names, and `--keep` makes the outcomes a column of the site's page of cases.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type CaseResult,
  conformanceCases,
  type Harness,
  harnessIn,
  type Outcome,
  runConformance,
  warnIfKeptOpen,
  writeReport,
} from '@locks/core/conformance';
import { fetchVersion } from '@locks/test-servers';
import { casesAtOnce } from './cases-at-once.ts';
import { harnessNames, harnessUrl } from './harness-names.ts';
import { reportDirectory } from './report-directory.ts';
import { keepResult } from './server-results.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean' },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true },
    server: { type: 'string' },
    keep: { type: 'boolean' },
  },
});
const [backend] = positionals;
if (values.list) {
  console.log(harnessNames.join('\n'));
} else if (values.keep === true && (values.server === undefined || values.only !== undefined)) {
  console.error('--keep needs --server VERSION, and the whole suite.');
  process.exitCode = 2;
} else if (backend === undefined || !harnessNames.includes(backend)) {
  const problem =
    backend === undefined ? 'Which backend?' : `There is no backend ${JSON.stringify(backend)}.`;
  console.error(`${problem} There are: ${harnessNames.join(', ')}.`);
  process.exitCode = 2;
} else {
  // Harnesses and their processes look for servers in this folder alone.
  if (values.server !== undefined) process.env['LOCKS_SERVER_PATH'] = fetchVersion(values.server);
  const harness = harnessIn((await import(harnessUrl(backend).href)) as object);
  if (harness === undefined) throw new Error(`src/harnesses/${backend}.ts exports no harness.`);
  process.exitCode = await run(harness, casesAtOnce[backend]);
  warnIfKeptOpen();
}

async function run(harness: Harness, concurrency: number | undefined): Promise<number> {
  const startedAt = performance.now();
  const results = new Map<string, CaseResult>();
  const report = await runConformance(harness, {
    runner: 'npm run conformance',
    only: values.only,
    seed: seedOf(values.seed),
    ...(concurrency !== undefined && { concurrency }),
    onResult: (result) => results.set(result.id, result),
  });
  let group = '';
  for (const { id } of conformanceCases) {
    const result = results.get(id);
    if (result === undefined) continue;
    const [of = '', what = id] = id.split('/');
    if (of !== group) console.log(`\n${of}`);
    group = of;
    console.log(`  ${result.outcome.padEnd(14)} ${what.padEnd(44)} ${String(result.ms).padStart(6)} ms`);
    if (result.reason !== undefined) console.log(indent(result.reason));
  }
  // A run of a part of the suite writes no report.
  // The matrix is rendered from runs on the servers that the tests install: those on other versions have a folder of their own.
  const folder =
    values.server === undefined ? reportDirectory : join(reportDirectory, 'servers', values.server);
  const file = values.only === undefined ? writeReport(report, folder) : 'no report of a part';
  const counts = new Map<Outcome, number>();
  for (const { outcome } of report.cases) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const summary = [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ');
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(
    `\n${report.backend}${values.server === undefined ? '' : ` on ${values.server}`}: ${summary}, in ${seconds} s with seed ${report.seed}\n${file}`,
  );
  const isClean = !counts.has('failed') && !counts.has('untested');
  if (values.keep === true && values.server !== undefined && values.only === undefined && isClean)
    console.log(`kept: ${keepResult(report, values.server)}`);
  return isClean ? 0 : 1;
}

function seedOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seed = Number(text);
  if (Number.isSafeInteger(seed) && seed >= 0) return seed;
  throw new Error(`--seed ${text}: use the number that the failure named.`);
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '      ');
}
