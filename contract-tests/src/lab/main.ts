/**
 * `npm run lab -- BACKEND… [--minutes M] [--seed S] [--nemesis a,b] [--workload a,b] [--json FILE]
 * [--histories FOLDER] [--edn FOLDER] [--trace FOLDER]`: workloads on real servers while these are broken, judged by `@locks/history`. `--json` writes one report for one
 * backend, and a list for several; `--histories` keeps what was judged, `--edn` writes it for the checkers of Jepsen, and `--trace` what `locks verify` reads. Exit code 1 on a violation, and where a workload acquired nothing:
 * such a nemesis is in no report.
 */
import { writeFileSync } from 'node:fs';
import { canSeparateNetworks } from '@locks/test-servers';
import { parseLabArguments } from './lab-arguments.ts';
import { type LabReport, type LabResult, tableOf } from './lab-report.ts';
import { NEMESES } from './nemeses.ts';
import { SeededRandom } from './random.ts';
import { NothingAcquired, runLab } from './run-lab.ts';

const MOST_SENTENCES = 5;
let provedNothing = false;

const asked = parseLabArguments(process.argv.slice(2));
if (typeof asked === 'string') {
  console.error(asked);
  process.exitCode = 2;
} else {
  const reports: LabReport[] = [];
  for (const backend of asked.backends) reports.push(await runBackend(backend, asked));
  for (const report of reports) console.log(`\n${tableOf(report)}`);
  if (asked.json !== undefined) {
    const written = reports.length === 1 ? reports[0] : reports;
    writeFileSync(asked.json, `${JSON.stringify(written, undefined, 2)}\n`);
  }
  const isBroken = reports.some(({ results }) => results.some(({ violations }) => violations > 0));
  process.exitCode = isBroken || provedNothing ? 1 : 0;
}

async function runBackend(
  backend: string,
  {
    nemeses,
    workloads,
    histories,
    edn,
    trace,
    seconds,
    seed,
  }: Exclude<ReturnType<typeof parseLabArguments>, string>,
): Promise<LabReport> {
  const startedAt = performance.now();
  const results: LabResult[] = [];
  for (const nemesis of nemeses) {
    let sentences = 0;
    // Each nemesis has numbers of its own: one alone repeats what it did among others.
    const random = new SeededRandom(seed * 1_009 + NEMESES.indexOf(nemesis));
    const found = await runLab({
      ...{ backend, nemesis, random, workloads, histories, edn, trace },
      seconds: seconds / nemeses.length,
      onViolation: (sentence) => {
        sentences += 1;
        if (sentences <= MOST_SENTENCES) console.log(`  ${backend}, ${nemesis}: ${sentence}`);
      },
      onMissing: (missing) => console.log(`${backend}, ${nemesis}: not run; ${missing}`),
    }).catch((error: unknown) => {
      if (!(error instanceof NothingAcquired)) throw error;
      provedNothing = true;
      console.error(error.message);
    });
    if (found === undefined) continue;
    results.push(...found);
    const operations = found.reduce((sum, one) => sum + one.operations, 0);
    console.log(`${backend}, ${nemesis}: ${operations} operations, ${sentences} violations`);
  }
  return {
    backend,
    seed,
    minutes: seconds / 60,
    ...(nemeses.length < NEMESES.length && { nemeses }),
    losesPackets: await canSeparateNetworks(),
    operations: results.reduce((sum, one) => sum + one.operations, 0),
    seconds: Math.round((performance.now() - startedAt) / 100) / 10,
    results,
  };
}
