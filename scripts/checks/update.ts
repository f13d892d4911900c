// `npm run update`: regenerates all committed files that are generated.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { problemOf } from './command.ts';
import type { Generator } from './generators.ts';
import { documentsGenerator, generators, matrixGenerator } from './generators.ts';
import { writeLists } from './packed-contents.ts';
import { buildStep } from './steps/source.ts';

const problems: string[] = [];

await Promise.all(generators.filter((one) => one !== documentsGenerator).map((one) => run(one)));
const built = await buildStep.run({ missing: new Set(), testArguments: [], repeats: false });
if (built.failed > 0) problems.push(built.output);
else await writeLists();
rmSync(join(root, 'etc/api'), { recursive: true });
await run({ name: 'etc/api', file: 'scripts/checks/api-reports.ts' }, 'etc/api');
// The matrix needs the reports of a full run of the conformance suite.
if (existsSync(matrixGenerator.file) && existsSync(join(root, 'conformance-report')))
  await run(matrixGenerator);
// It writes into documents that others write too, and reads the matrix.
await run(documentsGenerator);

for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;

async function run({ name, file }: Generator, ...args: string[]): Promise<void> {
  const problem = await problemOf('node', [file, ...args]);
  if (problem) problems.push(`${name}: ${problem}`);
}
