// Writes examples into the documents that show them, into each code block below `<!-- from examples/… -->`, and draws the pictures of
// the demo. `node generate.mjs --check` fails when a block is not what its file says, or a picture not what was recorded.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawDemo } from './demo-picture.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const BLOCK = /(^<!-- from (examples\/\S+) -->\n```(?:ts|sh)\n)[^]*?(^```$)/gm;

let blocks = 0;
for (const document of globSync('docs/**/*.md', { cwd: root })) {
  const text = readFileSync(join(root, document), 'utf8');
  const written = text.replace(BLOCK, (_, start, file, end) => {
    blocks += 1;
    return `${start}${readFileSync(join(root, file), 'utf8')}${end}`;
  });
  update(document, written);
}
if (blocks === 0) {
  console.error('no document has a block <!-- from examples/… -->');
  process.exitCode = 1;
}

const recorded = readFileSync(join(root, 'docs/images/demo.txt'), 'utf8');
update('docs/images/demo.svg', drawDemo(recorded));
update('docs/images/demo-light.svg', drawDemo(recorded, 'light'));
update('docs/images/demo-dark.svg', drawDemo(recorded, 'dark'));

/**
 * @param {string} file
 * @param {string} after
 */
function update(file, after) {
  const path = join(root, file);
  if (existsSync(path) && readFileSync(path, 'utf8') === after) return;
  if (process.argv.includes('--check')) {
    console.error(`${file} does not show what it is made from: run npm run update`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, after);
  }
}
