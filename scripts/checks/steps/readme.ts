import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import { consumerFolder } from '../consumer-folder.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const documents = [
  'README.md',
  'packages/*/README.md',
  'docs/*.md',
  'docs/backends/*.md',
  'docs/guides/*.md',
];
const compilerOptions = {
  target: 'esnext',
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};

/**
 * Every `ts` block of the READMEs compiles in an application that has the packed packages. Lines that a block needs and
 * a reader does not stand before it in a comment: `<!-- setup: declare const db: Database; -->`.
 */
export const readmeStep: Step = {
  name: 'readme',
  about: 'the code blocks of the READMEs and guides compile',
  kind: 'static',
  async run() {
    const folder = join(await consumerFolder(), 'documents');
    const blocks = globSync(documents, { cwd: root }).flatMap((document) => codeBlocks(document));
    if (blocks.length === 0)
      return resultOf([{ name: 'READMEs', problem: `no ts block in ${documents.join(', ')}` }]);
    for (const { file, code } of blocks) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), code);
    }
    const config = join(folder, 'tsconfig.json');
    writeFileSync(config, JSON.stringify({ compilerOptions, files: blocks.map((block) => block.file) }));

    const { ok, output } = await runCommand('tsc', ['-p', config], { cwd: folder });
    const checks = blocks.map(({ file }) => {
      const said = output.split('\n').filter((line) => line.startsWith(`${file}(`));
      return { name: file, problem: said.length > 0 ? said.join('\n') : undefined };
    });
    const explained = ok || checks.some((check) => check.problem);
    return resultOf(explained ? checks : [...checks, { name: 'tsc', problem: output }]);
  },
};

interface CodeBlock {
  /** The document's path with the line of the block: `packages/core/README.md.12.ts`. */
  readonly file: string;
  readonly code: string;
}

/** The blocks as files of their own in which every line stands where it stands in the document. */
export function codeBlocks(document: string, text = readFileSync(join(root, document), 'utf8')): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  const pattern = /(?:<!-- setup:(?<setup>(?:(?!-->)[^])*)-->\s*)?^```ts$\n(?<code>[^]*?)^```$/gm;
  for (const match of text.matchAll(pattern)) {
    const { setup = '', code = '' } = match.groups ?? {};
    const codeStart = match.index + match[0].length - '```'.length - code.length;
    const setupStart = setup === '' ? codeStart : match.index + match[0].indexOf(setup);
    const between = text.slice(setupStart + setup.length, codeStart);
    const lines = linesOnly(text.slice(0, setupStart)) + setup + linesOnly(between) + code;
    const line = text.slice(0, codeStart).split('\n').length;
    // Every block is a module, so that names of one do not meet those of another.
    blocks.push({ file: `${document}.${line}.ts`, code: `${lines}export {};\n` });
  }
  return blocks;
}

function linesOnly(text: string): string {
  return text.replaceAll(/[^\n]/g, '');
}
