import { globSync } from 'node:fs';
import { root, readRepositoryFile } from './repository.ts';

/** A Markdown file of the repository that is a page of the site. */
export interface RepositoryDocument {
  /** Relative to the root: `docs/guides/fencing.md`. */
  readonly file: string;
  /** The page's address without its ending: `guides/fencing`. */
  readonly route: string;
  /** The first heading. */
  readonly title: string;
  /** The first sentence below it. */
  readonly summary: string;
  readonly text: string;
}

/** Relative to the root. */
export const HOME = 'site/home.md';

const SOURCES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'benchmarks/README.md',
  'benchmarks/languages.md',
  'benchmarks/tables/*.md',
  'docs/**/*.md',
  'packages/*/README.md',
];

/** Every document of the repository, in the order of its files. */
export function readDocuments(): RepositoryDocument[] {
  return globSync(SOURCES, { cwd: root, exclude: ['**/node_modules/**'] })
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
    .map((file) => {
      const text = withoutComments(readRepositoryFile(file));
      return { file, route: routeOf(file), title: titleOf(text, file), summary: summaryOf(text), text };
    });
}

/**
 * `docs/adr/0001-x.md` is the page `decisions/0001-x`; the README of a folder is the page of that folder. The first page of the site is
 * none of the repository's documents, but `site/home.md`.
 */
export function routeOf(file: string): string {
  if (file === 'README.md') return 'readme';
  return file
    .replace(/\.md$/, '')
    .replace(/\/README$/, '')
    .replace(/^docs\/adr\//, 'decisions/')
    .replace(/^docs\//, '')
    .toLowerCase();
}

/** The page that the site begins with: links and pictures as in a document of the repository. */
export function readHome(): string {
  return readRepositoryFile(HOME);
}

/** Comments are for the tests of the code samples and for who edits a generated file. */
function withoutComments(text: string): string {
  return text.replaceAll(/^<!--[\s\S]*?-->\n/gm, '');
}

function titleOf(text: string, file: string): string {
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${file} has no heading of the first level`);
  return title.replaceAll('`', '');
}

/** The first sentence of the first paragraph, without links and emphasis. */
function summaryOf(text: string): string {
  const paragraph = text
    .split(/\n\s*\n/)
    .map((block) => block.trim().replaceAll('\n', ' '))
    .find((block) => block !== '' && !/^(#|```|\||<)/.test(block));
  const plain = (paragraph ?? '').replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll(/\*\*|`/g, '');
  return /^.*?[.:](?= [A-Z]|$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain;
}
