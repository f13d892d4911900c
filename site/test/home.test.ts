import { expect, it } from 'vitest';
import { readHome } from '../src/documents.ts';
import { picturesOfDemo } from '../src/home/home-page.ts';
import { readHomeNumbers } from '../src/home/numbers.ts';
import { repositoryUrl } from '../src/repository.ts';

it('draws the committed figures, the longest bar first', () => {
  for (const { title, bars } of readHomeNumbers().charts) {
    expect(bars.length, title).toBeGreaterThan(5);
    expect(bars[0]?.percent).toBe(100);
    expect(bars.some(({ isOurs }) => isOurs)).toBe(true);
    expect(bars.every(({ percent }, index) => percent <= (bars[index - 1]?.percent ?? 100))).toBe(true);
  }
});

it('refuses results that lack a library', () => {
  const results = { source: '', charts: [{ id: 'waiters', unit: '', bars: [] }] };
  expect(() => readHomeNumbers(JSON.stringify(results))).toThrow('lacks a library');
});

it('shows the picture of the demo in the theme that the reader chose', () => {
  const two = ['docs/images/demo-light.svg', 'docs/images/demo-dark.svg'];
  expect(picturesOfDemo((file) => two.includes(file)).match(/\{\.if-\w+\}/g)).toEqual([
    '{.if-light}',
    '{.if-dark}',
  ]);
  expect(picturesOfDemo((file) => file === 'docs/images/demo.svg')).toMatch(
    /\(\.\.\/docs\/images\/demo\.svg\)\{\.if-any\}$/,
  );
  expect(picturesOfDemo(() => false)).toBe('');
});

it('says what it is in at most 250 words', () => {
  const words = readHome()
    .replaceAll(/^```[^]*?^```$/gm, '')
    .replaceAll(/<[^>]+>|\]\([^)]*\)|\{[^}]*\}/g, ' ')
    .split(/\s+/)
    .filter((word) => /\w/.test(word));
  expect(words.length).toBeLessThanOrEqual(250);
});

it('links to the sources once package.json says where they are', () => {
  expect(repositoryUrl('{}')).toBe('');
  expect(repositoryUrl('{"repository":"github:a/b"}')).toBe('https://github.com/a/b');
  expect(repositoryUrl('{"repository":{"url":"git+https://example.org/a/b.git"}}')).toBe(
    'https://example.org/a/b',
  );
});
