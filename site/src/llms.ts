import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type RepositoryDocument, routeOf } from './documents.ts';
import { groupsOf } from './navigation.ts';
import type { ReferencePage } from './reference/reference-pages.ts';
import { outputFolder, pagesFolder } from './repository.ts';

/**
 * Writes what programs read: `llms.txt`, which lists every page with its summary, `llms-full.txt`, which has all documents, and
 * each page as Markdown beside it.
 * @param base the path under which the site is served, `/` at both ends
 */
export function writeLlmsFiles(
  documents: readonly RepositoryDocument[],
  reference: readonly ReferencePage[],
  base: string,
): void {
  writeOutput('llms.txt', llmsIndex(documents, reference, base));

  const markdown = new Map(
    globSync('**/*.md', { cwd: pagesFolder }).map((file) => [
      file.replaceAll('\\', '/'),
      markdownOf(file, base),
    ]),
  );
  for (const [file, text] of markdown) writeOutput(file, text);
  const full = groupsOf(documents)
    .flatMap((group) => group.documents)
    .map(({ route }) => markdown.get(`${route}.md`)?.trim());
  writeOutput('llms-full.txt', `${full.join('\n\n')}\n`);
}

/** The text of `llms.txt`: the doors of the README first, then every page of each group, then the reference. */
export function llmsIndex(
  documents: readonly RepositoryDocument[],
  reference: readonly Pick<ReferencePage, 'title' | 'route'>[],
  base: string,
): string {
  const readme = documents.find(({ file }) => file === 'README.md');
  if (readme === undefined) throw new Error('README.md was not found');
  const lists = [
    { text: 'Start here', lines: doorsOf(readme, base) },
    ...groupsOf(documents).map(({ text, documents: inGroup }) => ({
      text,
      lines: inGroup.map(({ title, route, summary }) => `- [${title}](${base}${route}.md): ${summary}`),
    })),
    {
      text: 'API reference',
      lines: reference.map(({ title, route }) => `- [${title}](${base}${fileOf(route)})`),
    },
  ].map(({ text, lines }) => [`## ${text}`, '', ...lines].join('\n'));
  return [`# ${readme.title}`, `> ${readme.summary}`, ...lists, ''].join('\n\n');
}

/** The README's table of doors as a list: `| what a reader has | [page](file): what is there |`. */
function doorsOf({ text }: RepositoryDocument, base: string): string[] {
  const rows = [...text.matchAll(/^\| ([^|]+?) \| \[[^\]]+\]\(([^)]+\.md)\):? ?([^|]*?) \|$/gm)];
  if (rows.length === 0) throw new Error('README.md has no table of doors');
  const start = `- [Getting started](${base}${routeOf('docs/getting-started.md')}.md): the first lock in three minutes`;
  return [
    start,
    ...rows.map(([, reader = '', file = '', about = '']) => {
      const link = `- [${reader}](${base}${routeOf(file)}.md)`;
      return about === '' ? link : `${link}: ${about.replaceAll('`', '')}`;
    }),
  ];
}

/** A page as Markdown, with links to the Markdown of other pages. */
function markdownOf(file: string, base: string): string {
  return readFileSync(join(pagesFolder, file), 'utf8')
    .replace(/^---\n[\s\S]*?\n---\n+/, '')
    .replaceAll(
      /\]\(\/([^)#]*)(#[^)]*)?\)/g,
      (_, route: string, anchor = '') => `](${base}${fileOf(route)}${anchor})`,
    );
}

function fileOf(route: string): string {
  if (/\.(png|svg)$/.test(route)) return route;
  return route === '' || route.endsWith('/') ? `${route}index.md` : `${route}.md`;
}

function writeOutput(path: string, text: string): void {
  const file = join(outputFolder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
