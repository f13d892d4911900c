import { transformSync } from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';

/** What scripts/applications/readme/main.ts prints when all of the README's code did what it says. */
export const readmeOutcome = { printed: ['process N holds token N'] };

/**
 * Writes the README's code as programs of the project: `readme/esm/main.mjs` and `readme/cjs/main.cjs`. Its types are removed, each
 * block becomes a function, and `new Redis()` is given the address of the test's server. Nothing else is changed.
 */
export function writeReadmeCode(project: string): void {
  const main = readFileSync(join(root, 'scripts/applications/readme/main.ts'), 'utf8');
  const blocks = readmeBlocks(readFileSync(join(root, 'README.md'), 'utf8'));
  for (const [format, extension] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ] as const) {
    const folder = join(project, 'readme', format);
    mkdirSync(folder, { recursive: true });
    const write = (name: string, code: string) =>
      writeFileSync(join(folder, `${name}.${extension}`), transformSync(code, { loader: 'ts', format }).code);
    write('main', main.replace("'./blocks'", `'./blocks.${extension}'`));
    const names = blocks.map((_, index) => `block${index}`);
    const imports = names.map((name) => `import { run as ${name} } from './${name}.${extension}';`);
    write('blocks', `${imports.join('\n')}\nexport const blocks = [${names.join(', ')}];`);
    blocks.forEach((code, index) => write(`block${index}`, code));
  }
}

/** The `ts` blocks of a document, each as a module that exports its code as a function. */
export function readmeBlocks(text: string): string[] {
  const blocks = [...text.matchAll(/^```ts$\n([^]*?)^```$/gm)].map(([, code = '']) => code);
  return blocks.map((code) => {
    const imports: string[] = [];
    const rest = code.replaceAll(/^import [^;]*;$/gm, (line) => {
      imports.push(line);
      return '';
    });
    const body = rest.replaceAll('new Redis()', "new Redis(process.env['REDIS_URL'] as string)");
    return `${imports.join('\n')}\nexport async function run() {\n${body}\n}\n`;
  });
}
