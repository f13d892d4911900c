import { expect, it } from 'vitest';
import { readDocuments } from '../src/documents.ts';
import { llmsIndex } from '../src/llms.ts';

const index = llmsIndex(readDocuments(), [{ title: '@locks/core', route: 'api/core' }], '/docs/');
const sections = index.split(/^## /m).map((section) => section.trim().split('\n'));

it('begins with what the project is, then with the doors of the README', () => {
  expect(index).toMatch(/^# locks\n\n> Distributed locks for Node\.js/);
  const [title, , ...doors] = sections[1] ?? [];
  expect(title).toBe('Start here');
  expect(doors[0]).toMatch(/^- \[Getting started\]\(\/docs\/getting-started\.md\): /);
  expect(doors[1]).toMatch(/^- \[one of these stores\]\(\/docs\/choosing-a-backend\.md\)$/);
  const targets = doors.map((door) => /\]\(\/docs\/([^)]+)\.md\)/.exec(door)?.[1]);
  expect(targets).toEqual([
    'getting-started',
    'choosing-a-backend',
    'backends/file',
    'once-per-slot',
    'guides/in-your-application',
    'guides/long-synchronous-work',
    'guides/serverless',
    'leader-election',
    'guides/deadlocks',
    'nestjs',
    'command-line',
    'guides/write-a-backend',
  ]);
});

it('leads to pages that exist', () => {
  const routes = new Set(readDocuments().map(({ route }) => route));
  const doors = sections[1]?.flatMap((line) => /\]\(\/docs\/([^)]+)\.md\)/.exec(line)?.[1] ?? []);
  expect(doors?.filter((route) => !routes.has(route))).toEqual([]);
});

it('lists every document, and the reference at its end', () => {
  for (const { title, route } of readDocuments())
    expect(index).toContain(`- [${title}](/docs/${route}.md): `);
  expect(sections.at(-1)).toContain('- [@locks/core](/docs/api/core.md)');
});
