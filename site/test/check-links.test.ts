import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { deadLinks } from '../src/check-links.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function site(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'site-'));
  folders.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

it('accepts links to pages, to anchors, to files, to folders and to other hosts', () => {
  const folder = site({
    'index.html': `<h2 id="start"></h2><a href="#start"></a><a href="guides/fencing#the-%C3%A9nd"></a>
      <a class="x" href="/guides/"></a><a href="https://example.org/none"></a><img src="/logo.svg">`,
    'guides/fencing.html': '<h2 id="the-énd"></h2><a href="../index.html#start"></a>',
    'guides/index.html': '',
    'logo.svg': '',
  });
  expect(deadLinks(folder, '/')).toEqual([]);
});

it('names the page, the link and the problem', () => {
  const folder = site({
    'index.html':
      '<a href="/missing"></a><a href="/other#none"></a><a href="#none"></a><script src="/x.js"></script>',
    'other.html': '<h2 id="some"></h2>',
  });
  expect(deadLinks(folder, '/')).toEqual([
    'index.html: /missing: no such page',
    'index.html: /other#none: no such anchor',
    'index.html: #none: no such anchor',
    'index.html: /x.js: no such page',
  ]);
});

it('refuses a link that leaves the path under which the site is served', () => {
  const folder = site({ 'index.html': '<a href="/locks/"></a><a href="/spec"></a>', 'spec.html': '' });
  expect(deadLinks(folder, '/locks/')).toEqual(['index.html: /spec: is outside of /locks/']);
});
