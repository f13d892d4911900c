import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../repository.ts';

const FOLDER = 'docs/images';
const TEXT =
  'Four processes sell 200 units at once: without a lock they oversell, with it they sell exactly 200';
const FRONTMATTER = { layout: 'home', title: 'Distributed locks for Node.js', titleTemplate: 'locks' };

/** The first page, with the picture of the demo where there is one: `demo.svg`, or `demo-light.svg` and `demo-dark.svg`. */
export function homePage(text: string): { text: string; frontmatter: Readonly<Record<string, unknown>> } {
  const pictures = picturesOfDemo((file) => existsSync(join(root, file)));
  const frontmatter = {
    ...FRONTMATTER,
    search: false,
    pageClass: pictures === '' ? 'home' : 'home has-picture',
  };
  return { text: text.replace('[demo]', pictures), frontmatter };
}

/** Markdown, relative to `site/home.md`. */
export function picturesOfDemo(exists: (file: string) => boolean): string {
  const picture = (name: string, theme: string) => `![${TEXT}](../${FOLDER}/${name}){.${theme}}`;
  if (exists(`${FOLDER}/demo-light.svg`) && exists(`${FOLDER}/demo-dark.svg`))
    return `${picture('demo-light.svg', 'if-light')}\n${picture('demo-dark.svg', 'if-dark')}`;
  return exists(`${FOLDER}/demo.svg`) ? picture('demo.svg', 'if-any') : '';
}
