import { readFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';
import { defineConfig } from 'vitepress';
import { nodeInPages } from '../src/browser/node-in-pages.ts';
import { topLinks } from '../src/navigation.ts';
import { outputFolder, pagesFolder, siteFolder } from '../src/repository.ts';
import { slugOf } from '../src/slug.ts';

const sidebar = JSON.parse(
  readFileSync(`${siteFolder}/generated/sidebar.json`, 'utf8'),
) as DefaultTheme.SidebarItem[];

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
  markdown: { anchor: { slugify: slugOf } },
  themeConfig: {
    nav: topLinks,
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    docFooter: { prev: false, next: false },
  },
});
