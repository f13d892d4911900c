import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const GLOSSARY = 'docs/glossary.md';
/** Each code of an error or a warning has its section here: readers search for the code. */
const TROUBLESHOOTING = 'docs/troubleshooting.md';
const SOURCES = [
  'packages/*/{src,conformance}/**/*.{ts,lua,sql}',
  '{contract-tests,test-servers}/src/**/*.ts',
];

/** Two packages export these on purpose. */
const IN_TWO_PACKAGES: Readonly<Record<string, string>> = {
  Lock: 'the Web Locks API calls its interface so, and core the lock of a resource',
  LockManager: 'the Web Locks API calls its interface so, and core what `createLocks()` returns',
};

/** One noun has one meaning, over all packages. */
export const wordsStep: Step = {
  name: 'words',
  about:
    'no type name is exported by two packages, the sources use every term of the glossary, and every code has its section in troubleshooting',
  kind: 'static',
  async run() {
    const sources = globSync(SOURCES, { cwd: root })
      .filter((file) => !file.includes('/generated/'))
      .map((file) => ({ file, package: packageOf(file), text: readFileSync(join(root, file), 'utf8') }));
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
    const product = sources.filter(({ file }) => file.startsWith('packages/')).map((source) => source.text);
    const page = readFileSync(join(root, TROUBLESHOOTING), 'utf8');
    const codes = codesIn(product).map((code) => ({
      name: `${TROUBLESHOOTING}: ${code}`,
      problem: isExplained(code, page) ? undefined : `${code} has no ${isOurs(code) ? 'heading' : 'mention'}`,
    }));
    return resultOf([...types, ...terms, ...codes]);
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

/** The members of every exported `…ErrorCode`, the `code` of every error class, and the codes of process warnings. */
function codesIn(texts: readonly string[]): string[] {
  const codes = new Set<string>();
  for (const text of texts) {
    for (const [, members = ''] of text.matchAll(/^export type \w+ErrorCode =([^]*?);$/gm)) add(members);
    for (const [, literal = ''] of text.matchAll(/^ {2}readonly code = ('\w+');/gm)) add(literal);
    for (const [, literal = ''] of text.matchAll(/\bcode: ('LOCKS_\w+')/g)) add(literal);
  }
  function add(literals: string): void {
    for (const [, code = ''] of literals.matchAll(/'([A-Z_]+)'/g)) codes.add(code);
  }
  return [...codes];
}

/** Whether users meet the code first; the others are of the causes of `LOCK_BACKEND`. */
function isOurs(code: string): boolean {
  return /^LOCKS?_/.test(code);
}

function isExplained(code: string, page: string): boolean {
  return isOurs(code) ? new RegExp(`^## ${code}$`, 'm').test(page) : page.includes(`\`${code}\``);
}
