import type { DefaultTheme } from 'vitepress';
import { routeOf } from '../documents.ts';
import { KEYWORDS } from './keywords.ts';

type LocalSearch = NonNullable<DefaultTheme.LocalSearchOptions>;
type Render = NonNullable<LocalSearch['_render']>;

/** How much a hit counts by the beginning of its address: the documents of users come before what few read. */
const WEIGHTS: readonly (readonly [string, number])[] = [
  ['/api/', 0.2],
  ['/decisions/', 0.3],
  ['/generated/', 0.2],
  ['/benchmarks/tables/', 0.2],
  ['/releasing', 0.3],
  ['/contributing', 0.3],
  ['/packages/', 0.5],
  ['/readme', 0.5],
];

/** How much more a hit counts on the page that is listed for the word. */
const LISTED = 30;

/** Words as they stand between spaces and punctuation, and names such as `LOCK_TIMEOUT` in one piece too. */
function tokenize(text: string): string[] {
  const names = text.match(/[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+/g) ?? [];
  return [...text.split(/[\n\r\p{Z}\p{P}]+/u).filter((word) => word !== ''), ...names];
}

/** The words of a text, as the index has them. */
export function wordsOf(text: string): string[] {
  return tokenize(text).map((word) => word.toLowerCase());
}

/** For the index and for the box on the pages; functions reach the pages as text, so each stands for itself. */
export const miniSearch: NonNullable<LocalSearch['miniSearch']> = {
  options: { tokenize: selfContained(['text'], `return (${tokenize.toString()})(text)`) },
  searchOptions: {
    fuzzy: 0.15,
    prefix: true,
    boost: { title: 4, text: 2, titles: 1 },
    boostDocument: selfContained(
      ['id', 'term'],
      `const page = id.replace(/#.*$/, '').replace(/\\.html$/, '');
      const words = ${JSON.stringify(listedWords())}[page] ?? [];
      const listed = words.includes(term) ? ${LISTED} : 1;
      const [, weight] = ${JSON.stringify(WEIGHTS)}.find(([beginning]) => page.startsWith(beginning)) ?? ['', 1];
      return listed * weight;`,
    ),
  },
};

function listedWords(): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(KEYWORDS).map(([file, keywords]) => [`/${routeOf(file)}`, wordsOf(keywords.join(' '))]),
  );
}

// oxlint-disable-next-line typescript/no-explicit-any, typescript/no-implied-eval -- the text is of this file
function selfContained(names: readonly string[], body: string): any {
  return new Function(...names, body);
}

/** The text that is indexed of a page: with the words that are listed for it, after its title. */
export const renderForSearch: Render = (source, environment, markdown) => {
  const html = markdown.render(source, environment);
  const { frontmatter = {}, relativePath = '' } = environment;
  if (frontmatter['search'] === false) return '';
  const file = Object.keys(KEYWORDS).find((one) => `${routeOf(one)}.md` === relativePath);
  const words = file === undefined ? '' : `<p>${KEYWORDS[file]?.join(' ')}</p>`;
  return html.replace('</h1>', `</h1>${words}`);
};
