import { harnessIn, runConformance, warnIfKeptOpen } from '@locks/core/conformance';

const [module = './harness.ts', seed = '42', ...only] = process.argv.slice(2);
const harness = harnessIn(await import(module));
if (harness === undefined) throw new Error(`${module} exports no harness`);
const { cases } = await runConformance(harness, { only, seed: Number(seed) });
for (const { outcome, id, reason = '' } of cases) console.log(outcome, id, reason);
process.exitCode = cases.every(({ outcome }) => ['passed', 'not-applicable'].includes(outcome)) ? 0 : 1;
warnIfKeptOpen();
