import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pagesFolder } from '../repository.ts';
import type { Reference } from './read-reference.ts';

/** The page of an entry point, or of all of them. */
export interface ReferencePage {
  readonly title: string;
  readonly route: string;
  /** The symbols of the entry point, by what they are; each has a page of its own. */
  readonly groups: readonly SymbolGroup[];
}

interface SymbolGroup {
  readonly text: string;
  readonly symbols: readonly { readonly title: string; readonly route: string }[];
}

/** Folders of the symbols' pages, in the order in which a reader looks for them. */
const KINDS: Readonly<Record<string, string>> = {
  functions: 'Functions',
  classes: 'Classes',
  interfaces: 'Interfaces',
  'type-aliases': 'Types',
  variables: 'Constants',
  enumerations: 'Enumerations',
};

/** Writes a page for each symbol, one for each entry point and one for all of these, and returns the latter two. */
export async function writeReferencePages({ application, project }: Reference): Promise<ReferencePage[]> {
  const folder = join(pagesFolder, 'api');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  application.options.setValue('out', folder);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error('TypeDoc could not write the reference');
  const files = markdownFiles(folder);
  for (const file of files) addTitle(join(folder, file), dirname(file));
  return files
    .filter((file) => basename(file) === 'index.md')
    .sort((a, b) => (dirname(a) < dirname(b) ? -1 : 1))
    .map((file) => ({
      title: titleOf(join(folder, file)),
      route: `api/${file.replace(/index\.md$/, '')}`,
      groups: groupsIn(dirname(file), folder, files),
    }));
}

function groupsIn(module: string, folder: string, files: readonly string[]): SymbolGroup[] {
  return Object.entries(KINDS).flatMap(([kind, text]) => {
    const symbols = files
      .filter((file) => dirname(file) === `${module}/${kind}`)
      .map((file) => ({ title: titleOf(join(folder, file)), route: `api/${file.replace(/\.md$/, '')}` }))
      .sort((a, b) => a.title.localeCompare(b.title, 'en'));
    return symbols.length > 0 ? [{ text, symbols }] : [];
  });
}

/** The title in the window and in the search says where a symbol comes from: two packages may have the same name. */
function addTitle(file: string, folder: string): void {
  const module = folder.replace(/\/[^/]+$/, '');
  const title = basename(file) === 'index.md' ? titleOf(file) : `${titleOf(file)} · ${module}`;
  const frontmatter = JSON.stringify({ title, pageClass: 'reference' });
  writeFileSync(file, `---\n${frontmatter}\n---\n\n${readFileSync(file, 'utf8')}`);
}

/** Without marks of Markdown and type parameters. */
function titleOf(file: string): string {
  const heading = /^# (.+)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? basename(file);
  return heading.replaceAll('\\', '').replace(/<.*>$/, '');
}

function markdownFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.md'))
    .sort();
}
