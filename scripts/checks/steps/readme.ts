import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { type CheckCommand, commandStep } from '../command-step.ts';
import { consumerFolder } from '../consumer-folder.ts';
import type { Step } from '../step.ts';

const readmes = ['README.md', 'packages/*/README.md'];
const documents = ['docs/*.md', 'docs/backends/*.md', 'docs/guides/*.md', 'site/home.md'];
const sources = 'packages/*/{src,conformance}/**/*.ts';
const compilerOptions = {
  target: 'esnext',
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
};

/**
 * Every `ts` block of the READMEs, and every `@example` of a docstring, compiles in an application that has the packed
 * packages. Lines that the block needs, but not its reader, are in a comment before it:
 * `<!-- setup: declare const db: Database; -->`, or `// setup: declare const db: Database;` above a docstring, where
 * `// setup of file.ts: …` makes a file that the example imports. Blocks with decorators compile as decorators of the standard and as
 * `experimentalDecorators`; those with NestJS as the latter only, since NestJS knows no others.
 */
export const readmeSteps: readonly Step[] = [
  commandStep({ name: 'readme', about: 'the code blocks of the READMEs compile', kind: 'static' }, () =>
    compileBlocks(
      'readme',
      globSync(readmes, { cwd: root }).flatMap((file) => codeBlocks(file)),
    ),
  ),
  commandStep(
    {
      name: 'readme:documents',
      about: 'the code blocks of the documents, and the examples of the docstrings, compile',
      kind: 'static',
    },
    () =>
      compileBlocks('documents', [
        ...globSync(documents, { cwd: root }).flatMap((file) => codeBlocks(file)),
        ...globSync(sources, { cwd: root }).flatMap((file) => exampleBlocks(file)),
      ]),
  ),
];

/** The compiler names the document and the line of what is wrong, by the name of the block's file. */
async function compileBlocks(name: string, blocks: readonly CodeBlock[]): Promise<readonly CheckCommand[]> {
  const cwd = join(await consumerFolder(), name);
  for (const { file, code } of blocks) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), code);
  }
  const decorated = blocks.filter(({ code }) => /^ *@[A-Z]/m.test(code));
  const ofStandard = blocks.filter((block) => !decorated.includes(block) || !/'@nestjs\//.test(block.code));
  return [
    compilation(cwd, 'standard', ofStandard, {}),
    ...(decorated.length > 0
      ? [compilation(cwd, 'legacy', decorated, { experimentalDecorators: true })]
      : []),
  ];
}

function compilation(
  cwd: string,
  decorators: string,
  blocks: readonly CodeBlock[],
  more: Readonly<Record<string, boolean>>,
): CheckCommand {
  const config = `tsconfig.${decorators}.json`;
  const files = blocks.map((block) => block.file);
  const content = { compilerOptions: { ...compilerOptions, ...more }, files };
  writeFileSync(join(cwd, config), JSON.stringify(content));
  return [`${blocks.length} blocks, ${decorators} decorators`, 'tsc', ['-p', config], { cwd }];
}

interface CodeBlock {
  /** The document's path with the line of the block: `packages/core/README.md.12.ts`. */
  readonly file: string;
  readonly code: string;
}

/** The blocks as files of their own; every line has the line number that it has in the document. */
function codeBlocks(document: string): CodeBlock[] {
  const text = readFileSync(join(root, document), 'utf8');
  const blocks: CodeBlock[] = [];
  const pattern =
    /(?:<!-- setup:(?<setup>(?:(?!-->)[^])*)-->\s*)?^```ts(?:\{[\d,]+\})?$\n(?<code>[^]*?)^```$/gm;
  for (const match of text.matchAll(pattern)) {
    const { setup = '', code = '' } = match.groups ?? {};
    const codeStart = match.index + match[0].length - '```'.length - code.length;
    const setupStart = setup === '' ? codeStart : match.index + match[0].indexOf(setup);
    const between = text.slice(setupStart + setup.length, codeStart);
    const lines = linesOnly(text.slice(0, setupStart)) + setup + linesOnly(between) + code;
    const line = text.slice(0, codeStart).split('\n').length;
    // Every block is a module, so that equal names in two blocks do not clash.
    blocks.push({ file: `${document}.${line}.ts`, code: `${lines}export {};\n` });
  }
  return blocks;
}

/** The examples of the docstrings of a source file, each as a file; every line has the line number that it has there. */
function exampleBlocks(source: string): CodeBlock[] {
  const text = readFileSync(join(root, source), 'utf8');
  const blocks: CodeBlock[] = [];
  const lines = text.split('\n');
  const setup: string[] = [];
  for (let line = 0; line < lines.length; line += 1) {
    const [, file, prepared] = /^ *\/\/ setup(?: of (\S+))?: (.*)$/.exec(lines[line] as string) ?? [];
    if (prepared !== undefined && file !== undefined)
      blocks.push({ file: `${dirname(source)}/${file}`, code: `${prepared}\n` });
    else if (prepared !== undefined) setup[line] = prepared;
    else if (/^ *(?!\*|\/\*\*)\S/.test(lines[line] as string)) setup.length = 0;
    if (!/^ *\* ```ts$/.test(lines[line] as string)) continue;
    const code: string[] = [...setup];
    const end = lines.findIndex((text, at) => at > line && /^ *\* ```$/.test(text));
    for (let at = line + 1; at < end; at += 1) code[at] = (lines[at] as string).replace(/^ *\* ?/, '');
    const padded = Array.from(code, (text) => text ?? '').join('\n');
    blocks.push({ file: `${source}.${line + 1}.ts`, code: `${padded}\nexport {};\n` });
    line = end;
  }
  return blocks;
}

function linesOnly(text: string): string {
  return text.replaceAll(/[^\n]/g, '');
}
