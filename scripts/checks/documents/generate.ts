// Writes what documents have in common, their tables of stores, what they count, and the figures of the benchmarks that they name. `--check` fails where a document differs, and writes nothing.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { withFigures } from './benchmark-figures.ts';
import { withSharedSentences } from './shared-sentences.ts';
import { withSimulationFigures } from './simulation-figures.ts';
import { storesWithoutRow, withStoreTables } from './store-tables.ts';
import { withCounts } from './track-record.ts';

const DOCUMENTS = ['README.md', 'docs/*.md', 'docs/{backends,guides}/*.md', 'packages/*/README.md'];
const isChecked = process.argv.includes('--check');

const { version } = JSON.parse(readFileSync(join(root, 'packages/core/package.json'), 'utf8')) as {
  readonly version: string;
};
const isPublished = version !== '0.0.0';
const bugs = JSON.parse(read('docs/track-record.json')) as { readonly foundBy: string }[];
const facts = { matrix: read('docs/compatibility.md'), support: read('docs/support.md') };
for (const name of storesWithoutRow(facts)) {
  console.error(`${name} has no row in scripts/checks/documents/stores.ts`);
  process.exitCode = 1;
}
for (const file of globSync(DOCUMENTS, { cwd: root })) {
  const before = read(file);
  const shared = withStoreTables(
    withFigures(withSharedSentences(before, file, { isPublished })),
    file,
    facts,
  );
  const after = await withCountsOf(file, shared);
  if (after === before) continue;
  if (isChecked) {
    console.error(`${file} differs from what it includes or counts: run npm run update`);
    process.exitCode = 1;
  } else writeFileSync(join(root, file), after);
}

/** The page with what it counts. */
async function withCountsOf(file: string, page: string): Promise<string> {
  if (file === 'docs/track-record.md') return withCounts(page, bugs);
  return file === 'docs/simulation.md' ? withSimulationFigures(page) : page;
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}
