// `npm run site`: builds the site into site/dist, offline, from the documents of the repository and the packages' types.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, serve } from 'vitepress';
import { deadLinks } from './check-links.ts';
import { readDocuments } from './documents.ts';
import { writeLlmsFiles } from './llms.ts';
import { sidebarsOf } from './navigation.ts';
import { readReference } from './reference/read-reference.ts';
import { writeReferencePages } from './reference/reference-pages.ts';
import { outputFolder, root, siteFolder, writeGenerated } from './repository.ts';
import { trySearch } from './search/check-search.ts';
import { writePages } from './write-pages.ts';

const { values: options } = parseArgs({
  options: {
    /** The path under which the site is served, `/` at both ends. */
    base: { type: 'string', default: '/' },
    /** Serves the site on this port of the loopback interface, once it is built. */
    serve: { type: 'string' },
  },
});

const started = performance.now();
// Pages of results that are kept are in no commit: they would say the same twice.
execFileSync(process.execPath, [join(root, 'contract-tests/src/write-generated-pages.ts')], {
  stdio: 'inherit',
});
const documents = readDocuments();
writePages(documents);
const reference = await writeReferencePages(await readReference());
const symbols = reference.flatMap(({ groups }) => groups.flatMap((group) => group.symbols)).length;
writeGenerated('sidebars.json', sidebarsOf(documents, reference));

await build(siteFolder, { base: options.base });
writeLlmsFiles(documents, reference, options.base);

const dead = deadLinks(outputFolder, options.base);
for (const link of dead) console.error(link);
if (dead.length > 0) console.error(`${dead.length} links of the site lead nowhere`);
const search = await trySearch(
  outputFolder,
  documents.map(({ file }) => file),
);
for (const problem of search.problems) console.error(`search: ${problem}`);
if (dead.length + search.problems.length > 0) {
  process.exitCode = 1;
} else {
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  const absent =
    search.absent.length > 0 ? `, ${search.absent.length} not tried (${search.absent.join('; ')})` : '';
  console.log(
    `site/dist: ${documents.length} documents, ${symbols} pages of reference, ${search.found} searches find their page${absent}, ${seconds} s`,
  );
  if (options.serve !== undefined) {
    await serve({ root: siteFolder, base: options.base, port: Number(options.serve) });
  }
}
