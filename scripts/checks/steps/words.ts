import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const GLOSSARY = 'docs/glossary.md';
const SOURCES = ['packages/*/src/**/*.{ts,lua,sql}', '{contract-tests,test-servers}/src/**/*.ts'];

/** Two packages export these on purpose. */
const IN_TWO_PACKAGES: Readonly<Record<string, string>> = {
  Lock: 'the Web Locks API calls its interface so, and core the lock of a resource',
  LockManager: 'the Web Locks API calls its interface so, and core what `createLocks()` returns',
};

/** One noun has one meaning, over all packages. */
export const wordsStep: Step = {
  name: 'words',
  about: 'no type name is exported by two packages, and the sources use every term of the glossary',
  kind: 'static',
  async run() {
    const sources = globSync(SOURCES, { cwd: root })
      .filter((file) => !file.includes('/generated/'))
      .map((file) => ({ package: packageOf(file), text: readFileSync(join(root, file), 'utf8') }));
    const packagesOf = new Map<string, Set<string>>();
    for (const source of sources) {
      for (const name of exportedTypes(source.text)) {
        packagesOf.set(name, (packagesOf.get(name) ?? new Set()).add(source.package));
      }
    }
    const types = [...packagesOf].map(([name, packages]) => ({
      name,
      problem:
        packages.size > 1 && !Object.hasOwn(IN_TWO_PACKAGES, name)
          ? `is a type of ${[...packages].join(' and ')}: each needs a name that says what it is`
          : undefined,
    }));
    const text = sources.map((source) => source.text).join('\n');
    const terms = termsIn(readFileSync(join(root, GLOSSARY), 'utf8')).map((term) => ({
      name: `${GLOSSARY}: ${term}`,
      problem: isUsed(term, text) ? undefined : 'no source uses this term',
    }));
    return resultOf([...types, ...terms]);
  },
};

/** `core` of `packages/core/src/lock.ts`, `test-servers` of `test-servers/src/index.ts`. */
function packageOf(file: string): string {
  return file.replace(/^packages\//, '').split('/', 1)[0] ?? file;
}

function exportedTypes(text: string): string[] {
  const declarations = /^export (?:declare |abstract )*(?:class|interface|type|enum) (\w+)/gm;
  return [...text.matchAll(declarations)].map(([, name = '']) => name);
}

/** The first column of the table, without its head. */
function termsIn(markdown: string): string[] {
  return [...markdown.matchAll(/^\| ([^|]+?) \|/gm)].slice(1).map(([, term = '']) => term);
}

/** Whether a text has the term, also as a part of a name: `fencing token` is used by `fencingToken` and `#fencing_token`. */
function isUsed(term: string, text: string): boolean {
  return new RegExp(`\\b${term.replaceAll(/[ -]/g, '[\\s_*-]*')}`, 'i').test(text);
}
