import { expect, it } from 'vitest';
import { readDocuments, routeOf } from '../src/documents.ts';
import { LinkTargets } from '../src/links.ts';
import { groupsOf, sidebarsOf } from '../src/navigation.ts';
import { slugOf } from '../src/slug.ts';

it('gives every document an address of its own, a title and a place in the navigation', () => {
  const documents = readDocuments();
  expect(documents.length).toBeGreaterThan(50);
  expect(new Set(documents.map(({ route }) => route)).size).toBe(documents.length);
  expect(groupsOf(documents).flatMap((group) => group.documents)).toHaveLength(documents.length);
  expect(documents.filter(({ title, summary }) => title === '' || summary === '')).toEqual([]);
});

it('makes addresses of files', () => {
  expect(routeOf('README.md')).toBe('readme');
  expect(routeOf('docs/guides/fencing.md')).toBe('guides/fencing');
  expect(routeOf('docs/adr/0001-core.md')).toBe('decisions/0001-core');
  expect(routeOf('packages/core/README.md')).toBe('packages/core');
});

it('turns links to files into links to pages, except in code', () => {
  const targets = new LinkTargets([
    'README.md',
    'docs/spec.md',
    'docs/guides/fencing.md',
    'packages/memory/README.md',
  ]);
  const text = [
    '[a](../spec.md#1-time) [b](../../packages/memory) [c](https://example.org) [d](#here) [e](../../README.md)',
    '```md',
    '[a](../spec.md)',
    '```',
    '[source](../../site/package.json)',
  ].join('\n');
  expect(targets.rewrite('docs/guides/fencing.md', text).split('\n')).toEqual([
    '[a](/spec#1-time) [b](/packages/memory) [c](https://example.org) [d](#here) [e](/readme)',
    '```md',
    '[a](../spec.md)',
    '```',
    '[source](/source/site/package-json)',
  ]);
  expect([...targets.sources]).toEqual(['site/package.json']);
  expect(targets.problems).toEqual([]);
});

it('keeps pictures as they are', () => {
  const targets = new LinkTargets(['docs/command-line.md']);
  expect(targets.rewrite('docs/command-line.md', '![the page](images/board.png)')).toBe(
    '![the page](/docs/images/board.png)',
  );
  expect([...targets.pictures]).toEqual(['docs/images/board.png']);
  expect([...targets.sources]).toEqual([]);
});

it('reports a link to a file that does not exist', () => {
  const targets = new LinkTargets(['docs/spec.md']);
  targets.rewrite('docs/spec.md', '[a](guides/none.md)');
  expect(targets.problems).toEqual(['docs/spec.md: guides/none.md is no file of the repository']);
});

it('makes anchors as code hosts do', () => {
  expect(slugOf('What `npm test` runs, and why: §2')).toBe('what-npm-test-runs-and-why-2');
  expect(slugOf('A – B')).toBe('a--b');
});

it('has the generated tables in a sidebar of their own, last of all', () => {
  const document = (file: string) => ({ file, route: routeOf(file), title: file, summary: '', text: '' });
  const documents = ['benchmarks/tables/redis.md', 'docs/generated/cases.md', 'docs/spec.md'].map(document);
  expect(groupsOf(documents).map(({ text }) => text)).toEqual(['Understand', 'Generated tables']);
  const sidebars = sidebarsOf(documents, []);
  expect(Object.keys(sidebars)).toEqual(['/benchmarks/tables/', '/generated/', '/api/', '/']);
});

it('has the symbols of an entry point in its sidebar, by what they are', () => {
  const symbols = [{ title: 'createLocks()', route: 'api/@locks/core/functions/createLocks' }];
  const page = { title: '@locks/core', route: 'api/@locks/core/', groups: [{ text: 'Functions', symbols }] };
  expect(sidebarsOf([], [page])['/api/@locks/core/']).toMatchObject([
    { text: 'API reference' },
    { text: 'Functions', items: [{ text: 'createLocks()', link: '/api/@locks/core/functions/createLocks' }] },
  ]);
});
