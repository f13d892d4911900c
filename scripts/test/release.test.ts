import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../launcher/root.mjs';
import { writeLinks } from '../release/write-links.mjs';

function workspaceWith(links: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  mkdirSync(join(folder, 'packages/core'), { recursive: true });
  cpSync(join(root, 'packages/core/package.json'), join(folder, 'packages/core/package.json'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'locks', ...links }));
  return folder;
}

test('a release is refused while repository, homepage or bugs is unset', () => {
  expect(() => writeLinks(workspaceWith({}))).toThrow('repository, homepage, bugs');
  expect(() => writeLinks(workspaceWith({ repository: 'r', homepage: 'h' }))).toThrow('lacks bugs');
});

test('what the root says stands in every package, with its folder', () => {
  const folder = workspaceWith({ repository: 'git+https://example.org/x.git', homepage: 'h', bugs: 'b' });
  writeLinks(folder);
  expect(JSON.parse(readFileSync(join(folder, 'packages/core/package.json'), 'utf8'))).toMatchObject({
    name: '@locks/core',
    repository: { type: 'git', url: 'git+https://example.org/x.git', directory: 'packages/core' },
    homepage: 'h',
    bugs: 'b',
  });
});
