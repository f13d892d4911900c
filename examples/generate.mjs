// Writes examples into the documents that show them: into each code block below `<!-- from examples/… -->`.
// `node generate.mjs --check` fails when a block is not what its file says.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const BLOCK = /(^<!-- from (examples\/\S+) -->\n```ts\n)[^]*?(^```$)/gm;

let blocks = 0;
for (const document of globSync('docs/**/*.md', { cwd: root })) {
  const path = join(root, document);
  const text = readFileSync(path, 'utf8');
  const written = text.replace(BLOCK, (_, start, file, end) => {
    blocks += 1;
    return `${start}${readFileSync(join(root, file), 'utf8')}${end}`;
  });
  if (written === text) continue;
  if (process.argv.includes('--check')) {
    console.error(`${document} does not show what is in its examples: run npm run update`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, written);
  }
}
if (blocks === 0) {
  console.error('no document has a block <!-- from examples/… -->');
  process.exitCode = 1;
}
