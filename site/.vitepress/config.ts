import { readFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';
import { defineConfig } from 'vitepress';
import { nodeInPages } from '../src/browser/node-in-pages.ts';
import { inlinePictures } from '../src/inline-pictures.ts';
import { topLinks } from '../src/navigation.ts';
import { outputFolder, pagesFolder, repositoryUrl, siteFolder } from '../src/repository.ts';
import { miniSearch, renderForSearch } from '../src/search/options.ts';
import { slugOf } from '../src/slug.ts';

const logo = readFileSync(`${siteFolder}/logo.svg`, 'utf8');
const repository = repositoryUrl();

const sidebar = JSON.parse(
  readFileSync(`${siteFolder}/generated/sidebars.json`, 'utf8'),
) as DefaultTheme.SidebarMulti;

export default defineConfig({
  title: 'locks',
  description:
    'Distributed locks for Node.js on Redis, Valkey, PostgreSQL, MySQL, SQLite, etcd and ZooKeeper, with fencing tokens',
  lang: 'en',
  srcDir: pagesFolder,
  outDir: outputFolder,
  cacheDir: `${siteFolder}/generated/cache`,
  // The build checks all links of the finished pages itself, with their anchors.
  ignoreDeadLinks: true,
  // The navigation is a file that all pages share.
  metaChunk: true,
  // The index of the search is one file, which is loaded at the first search.
  vite: { build: { chunkSizeWarningLimit: 2_000 }, plugins: [nodeInPages()] },
  markdown: {
    anchor: { slugify: slugOf },
    config: inlinePictures,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(logo)}` }]],
  themeConfig: {
    logo: { src: '/logo.svg', alt: '' },
    nav: topLinks,
    sidebar,
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch, _render: renderForSearch } },
    docFooter: { prev: false, next: false },
    socialLinks: repository === '' ? [] : [{ icon: 'github', link: repository, ariaLabel: 'The repository' }],
  },
});
