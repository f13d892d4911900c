import { readFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';
import { defineConfig } from 'vitepress';
import { nodeInPages } from '../src/browser/node-in-pages.ts';
import { inlinePictures } from '../src/inline-pictures.ts';
import { topLinks } from '../src/navigation.ts';
import { outputFolder, pagesFolder, siteFolder } from '../src/repository.ts';
import { slugOf } from '../src/slug.ts';

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#3451b2" stroke-width="2" d="M5 7V5a3 3 0 0 1 6 0v2"/><rect x="3" y="7" width="10" height="7" rx="1" fill="#3451b2"/></svg>';

const sidebar = JSON.parse(
  readFileSync(`${siteFolder}/generated/sidebars.json`, 'utf8'),
) as DefaultTheme.SidebarMulti;

export default defineConfig({
  title: 'locks',
  description: 'Distributed locks for Node.js that state what they promise, and prove it',
  lang: 'en',
  srcDir: pagesFolder,
  outDir: outputFolder,
  cacheDir: `${siteFolder}/generated/cache`,
  // The build checks all links of the finished pages itself, with their anchors.
  ignoreDeadLinks: true,
  // The index of the search is one file, which is loaded at the first search.
  vite: { build: { chunkSizeWarningLimit: 2_000 }, plugins: [nodeInPages()] },
  markdown: {
    anchor: { slugify: slugOf },
    config: inlinePictures,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  themeConfig: {
    nav: topLinks,
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    docFooter: { prev: false, next: false },
  },
});
