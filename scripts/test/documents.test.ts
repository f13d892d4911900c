import { describe, expect, it } from 'vitest';
import { withFigures } from '../checks/documents/benchmark-figures.ts';
import { withSharedSentences } from '../checks/documents/shared-sentences.ts';
import { withCounts } from '../checks/documents/track-record.ts';

const PAGE = [
  '<!-- counts: written by npm run update from docs/track-record.json -->',
  'Bugs found so far in safety or liveness: **85**, all fixed.',
  '<!-- end -->',
].join('\n');
const found = (...finders: string[]) => finders.map((foundBy) => ({ foundBy }));

describe('the head of the track record', () => {
  it('counts the bugs, and who found them', () => {
    const bugs = found('outside tests', 'simulation, seed 7', 'outside test', '(suite)');
    const head = withCounts(PAGE, bugs);
    expect(head).toContain('**4**, all fixed');
    expect(head).toContain('Outside tests 2, the [simulation](simulation.md) 1, the [conformance suite]');
    expect(withCounts(head, bugs)).toBe(head);
  });

  it('refuses a finder that it cannot count', () => {
    expect(() => withCounts(PAGE, found('a dream'))).toThrow('does not know who "a dream" is');
  });

  it('refuses a page without a place for the counts', () => {
    expect(() => withCounts('# Track record\n', [])).toThrow('no block');
  });
});

describe('a shared sentence', () => {
  const sentences = { crash: 'It [never comes](docs/guides/ttl-and-wait.md#a-crash).' };
  const included = (document: string, file: string): string =>
    withSharedSentences(document, file, { sentences, isPublished: false });

  it.each([
    ['README.md', 'docs/guides/ttl-and-wait.md#a-crash'],
    ['docs/guides/production.md', 'ttl-and-wait.md#a-crash'],
    ['docs/guides/ttl-and-wait.md', '#a-crash'],
  ])('stands in %s with a link that leads there', (file, target) => {
    expect(included('Free soon. <!-- include crash -->old<!-- end -->', file)).toBe(
      `Free soon. <!-- include crash -->It [never comes](${target}).<!-- end -->`,
    );
  });

  it('names the document in the README of a package, whose tarball has no documents', () => {
    expect(included('<!-- include crash --><!-- end -->', 'packages/nats/README.md')).toBe(
      '<!-- include crash -->It never comes (`docs/guides/ttl-and-wait.md` in the repository).<!-- end -->',
    );
  });

  it('that does not exist is refused', () => {
    expect(() => included('<!-- include dash --><!-- end -->', 'README.md')).toThrow('no shared sentence');
  });
});

describe('a command that installs the packages', () => {
  const command = '```sh\nnpm i -g @locks/cli\n```\n\nMore.\n';
  const written = (document: string, isPublished: boolean): string =>
    withSharedSentences(document, 'docs/page.md', { isPublished });

  it('has a note until they are published, and once only', () => {
    const noted = written(command, false);
    expect(noted).toMatch(/```\n\nUntil 0\.1\.0 .*\(\.\.\/README\.md#install\)\.\n\nMore\.\n$/);
    expect(written(noted, false)).toBe(noted);
    expect(written(noted, true)).toBe(command);
  });

  it('of another package has none', () => {
    const other = '```sh\nnpm i express\n```\n\n```sh\nnpm test\n```\n';
    expect(written(other, false)).toBe(other);
  });
});

describe('a figure of a benchmark', () => {
  const tables = [
    '# Tables\n',
    '## 4 × 8, each 10 times\n\n| | ms |\n|---|--:|\n| @locks/mysql | 9.9 |\n',
    '## 4 × 8\n\n| | ms | p99 ms |\n|---|--:|--:|\n| @locks/mysql * | 5.4 | 13.6 |\n',
  ].join('\n');
  const written = (name: string): string => withFigures(`<!-- figure ${name} -->?<!-- end -->`, () => tables);

  it.each([
    ['mysql, 4 × 8, @locks/mysql, p99 ms', '13.6'],
    ['mysql, 4 × 8, each, @locks/mysql, ms', '9.9'],
  ])('%s is %s', (name, figure) => {
    expect(written(name)).toBe(`<!-- figure ${name} -->${figure}<!-- end -->`);
  });

  it.each(['mysql, 4 × 8, @locks/mysql, p50 ms', 'mysql, 4 × 9, @locks/mysql, ms', 'mysql, 4 × 8, etcd, ms'])(
    '%s does not exist and is refused',
    (name) => {
      expect(() => written(name)).toThrow('no figure');
    },
  );
});
