// `npm run update`: regenerates all committed files that are generated.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { problemOf } from './command.ts';
import type { Generator } from './generators.ts';
import { generators, matrixGenerator } from './generators.ts';
import { writeLists } from './packed-contents.ts';
import { updateReports } from './steps/api.ts';
import { buildStep } from './steps/source.ts';

const problems: string[] = [];

await Promise.all(generators.map(run));
const built = await buildStep.run({ missing: new Set(), testArguments: [], repeats: false });
if (built.failed > 0) problems.push(built.output);
else await writeLists();
problems.push(...updateReports());
// The matrix needs the reports of a full run of the conformance suite.
if (existsSync(matrixGenerator.file) && existsSync(join(root, 'conformance-report')))
  await run(matrixGenerator);

for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;

async function run({ name, file }: Generator): Promise<void> {
  const problem = await problemOf('node', [file]);
  if (problem) problems.push(`${name}: ${problem}`);
}
