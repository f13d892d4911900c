// `npm run weight`: how many words the documents have, how many lines each part has, how many functions an acquire runs through, and how
// long the tests take.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../launcher/root.mjs';
import { countAcquires, STORE_NAMES } from './acquire-count.ts';

const { values: options } = parseArgs({
  options: {
    /** Every document, not only the sums. */
    pages: { type: 'boolean', default: false },
    /** Every function of an acquire, and every call back up, not only their number. */
    functions: { type: 'boolean', default: false },
  },
});

const DOCUMENTS = ['*.md', 'docs/**/*.md', 'packages/*/README.md', 'benchmarks/**/*.md', 'test-servers/*.md'];
/** Pages that a program writes from measurements and reports: nobody reads them from top to bottom. */
const GENERATED = ['docs/generated/**', 'benchmarks/tables/**', 'docs/compatibility.md'];
const DECISIONS = 'docs/adr/**';

const PARTS: readonly (readonly [string, readonly string[]])[] = [
  ['core', ['packages/core/src/**/*.ts']],
  ...[
    'redis-protocol',
    'redis-ioredis',
    'redis-node',
    'redis-glide',
    'upstash',
    'postgres',
    'mysql',
    'sqlite',
    'etcd',
    'zookeeper',
  ].map((name) => [name, [`packages/${name}/src/**/*.{ts,lua,sql}`]] as const),
  ['product', ['packages/*/src/**/*.{ts,lua,sql}']],
  ['suite', ['packages/core/conformance/**/*.ts']],
  ['unit tests', ['packages/*/test/**/*.ts']],
  ['contract-tests', ['contract-tests/{src,test}/**/*.ts']],
  ['simulation', ['simulation/{src,test}/**/*.ts']],
  ['benchmarks', ['benchmarks/{src,test}/**/*.ts']],
  ['test-servers', ['test-servers/**/*.{ts,mjs,c}']],
  ['scripts', ['scripts/**/*.{ts,mjs,cts,cjs}']],
  ['site', ['site/{src,test,.vitepress}/**/*.{ts,vue,css}']],
];
/** The most files of a store's packages that an acquire should run through. */
const MOST_FILES = 20;

function filesOf(globs: readonly string[]): string[] {
  const options = { cwd: root, exclude: ['**/{node_modules,dist,generated}/**'] };
  return globSync(globs, options).map((file) => file.replaceAll('\\', '/'));
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** Prose is what is left without code, comments and tables. */
function proseOf(markdown: string): string {
  return markdown
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .replaceAll(/<!--[^]*?-->/g, '')
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('|'))
    .join('\n');
}

/** A word has a letter or a digit: the rules of a table count for nothing. */
function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

function linesIn(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0);
}

const generated = new Set(globSync(GENERATED, { cwd: root }));
const decisions = new Set(filesOf([DECISIONS]));
const pages = globSync(DOCUMENTS, { cwd: root, exclude: ['**/node_modules/**'] })
  .map((file) => file.replaceAll('\\', '/'))
  .map((file) => ({ file, prose: wordsIn(proseOf(read(file))), all: wordsIn(read(file)) }))
  .sort((a, b) => b.prose - a.prose);

function sumOf(label: string, chosen: readonly (typeof pages)[number][]): void {
  const [prose, all] = [
    chosen.reduce((sum, page) => sum + page.prose, 0),
    chosen.reduce((sum, page) => sum + page.all, 0),
  ];
  console.log(`  ${String(prose).padStart(7)} ${String(all).padStart(7)}  ${label}`);
}

console.log('words: prose, all (with code and tables)');
const written = pages.filter(({ file }) => !generated.has(file));
if (options.pages) for (const page of written) sumOf(page.file, [page]);
sumOf(
  'documents, without generated pages and decisions',
  written.filter(({ file }) => !decisions.has(file)),
);
sumOf(
  'decisions (docs/adr)',
  written.filter(({ file }) => decisions.has(file)),
);
sumOf(
  'generated pages',
  pages.filter(({ file }) => generated.has(file)),
);

console.log('lines');
for (const [name, globs] of PARTS) {
  console.log(`  ${String(linesIn(filesOf(globs))).padStart(7)}  ${name}`);
}

console.log(
  `an acquire: files, files of the store's packages (at most ${MOST_FILES}), functions, calls back up`,
);
for (const store of STORE_NAMES) {
  for (const { name, files, filesOfStore, functions, backUp } of await countAcquires(store)) {
    const numbers = [files, filesOfStore, functions.length, backUp.length];
    const tooMany = filesOfStore > MOST_FILES ? ': too many files' : '';
    console.log(
      `  ${numbers.map((each) => String(each).padStart(7)).join(' ')}  ${store}, ${name}${tooMany}`,
    );
    const each = [...functions, ...backUp.map((call) => `back up: ${call}`)];
    if (options.functions) for (const line of each) console.log(`${' '.repeat(34)}${line}`);
  }
}

console.log(
  'seconds of all steps of the tests, one after the other on a quiet machine of two cores: wall, processors',
);
const durations = Object.values(
  JSON.parse(read('scripts/checks/durations.json')) as Record<string, { seconds: number; busy: number }>,
);
const seconds = durations.reduce((sum, step) => sum + step.seconds, 0);
const busy = durations.reduce((sum, step) => sum + step.busy, 0);
console.log(`  ${seconds.toFixed(0).padStart(7)} ${busy.toFixed(0).padStart(7)}`);
