import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { HOME, type RepositoryDocument, readHome } from './documents.ts';
import { homePage } from './home/home-page.ts';
import { readHomeNumbers } from './home/numbers.ts';
import { filesOf, LinkTargets, sourceRoute } from './links.ts';
import {
  pagesFolder,
  readRepositoryFile,
  repositoryUrl,
  root,
  siteFolder,
  writeGenerated,
} from './repository.ts';
import { readChoices } from './widgets/choices.ts';
import { withWidgets } from './widgets/with-widgets.ts';

const PLAYGROUND = `# Playground\n\n<PlayGround />\n`;

/** Writes a page for each document, and one for each file or folder of the repository that a document links to. */
export function writePages(documents: readonly RepositoryDocument[]): void {
  rmSync(pagesFolder, { recursive: true, force: true });
  const targets = new LinkTargets(documents.map(({ file }) => file));
  for (const { file, route, title, summary, text } of documents) {
    const page = withWidgets(file, targets.rewrite(file, text));
    writePage(route, { title, description: summary, ...page.frontmatter }, page.text);
    if (file === 'docs/choosing-a-backend.md') writeGenerated('choices.json', readChoices(page.text));
  }
  const home = homePage(readHome());
  writePage('index', home.frontmatter, targets.rewrite(HOME, home.text));
  writeGenerated('numbers.json', readHomeNumbers());
  writeGenerated('sizing.json', JSON.parse(readRepositoryFile('benchmarks/results/sizing.json')).figures);
  writeGenerated('repository.json', { url: repositoryUrl() });
  writePage('playground', { title: 'Playground', aside: false }, PLAYGROUND);
  for (const path of [...targets.sources]) {
    const files = filesOf(path);
    if (files === undefined) writeSourcePage(path);
    else writeFolderPage(path, files, documents);
  }
  for (const path of targets.pictures) cpSync(join(root, path), join(pagesFolder, 'public', path));
  cpSync(join(siteFolder, 'logo.svg'), join(pagesFolder, 'public/logo.svg'));
  if (targets.problems.length > 0) throw new Error(`dead links:\n${targets.problems.join('\n')}`);
}

function writeFolderPage(
  path: string,
  files: readonly string[],
  documents: readonly RepositoryDocument[],
): void {
  const lines = files.map((file) => {
    const document = documents.find((one) => one.file === file);
    if (document !== undefined) return `- [${document.title}](/${document.route})`;
    writeSourcePage(file);
    return `- [${file}](/${sourceRoute(file)})`;
  });
  writePage(sourceRoute(path), { title: path, search: false }, `# ${path}\n\n${lines.join('\n')}\n`);
}

function writeSourcePage(file: string): void {
  const language = extname(file).slice(1) || 'txt';
  const text = `# ${file}\n\n\`\`\`\`${language}\n${readRepositoryFile(file).trimEnd()}\n\`\`\`\`\n`;
  writePage(sourceRoute(file), { title: file, search: false }, text);
}

function writePage(route: string, frontmatter: Readonly<Record<string, unknown>>, text: string): void {
  const file = join(pagesFolder, `${route}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `---\n${JSON.stringify(frontmatter)}\n---\n\n${text}`);
}
