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

/** A symbol whose name was typed counts as much as a page of words. */
const NAMED = 1;

/** For the index and for the box on the pages. Functions reach the pages as text, so each stands for itself. */
export const miniSearch: NonNullable<LocalSearch['miniSearch']> = {
  options: {
    // Words as they stand between spaces and punctuation, and names such as `LOCK_TIMEOUT` in one piece too.
    tokenize: (text) => [
      ...text.split(/[\n\r\p{Z}\p{P}]+/u).filter((word) => word !== ''),
      ...(text.match(/[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+/g) ?? []),
    ],
  },
  searchOptions: {
    fuzzy: 0.15,
    // Every code of an error begins with `lock`.
    prefix: (term) => !/^locks?$/.test(term),
    boost: { title: 4, text: 2, titles: 1 },
    boostDocument: weight(),
  },
};

type Weight = (id: unknown, term: string) => number;

function weight(): Weight {
  const listed = Object.fromEntries(
    Object.entries(KEYWORDS).map(([file, words]) => [
      `/${routeOf(file)}`,
      words.map((word) => word.toLowerCase()),
    ]),
  );
  const body = `
    const page = id.replace(/#.*$/, '').replace(/\\.html$/, '');
    if ((${JSON.stringify(listed)}[page] ?? []).includes(term)) return ${LISTED};
    if (page.startsWith('/api/') && page.split('/').pop().toLowerCase() === term) return ${NAMED};
    return ${JSON.stringify(WEIGHTS)}.find(([beginning]) => page.startsWith(beginning))?.[1] ?? 1;`;
  // The pages get this function as text: it has to bring its data along.
  // oxlint-disable-next-line typescript/no-implied-eval
  return new Function('id', 'term', body) as Weight;
}

/** The text that is indexed of a page: with the words that are listed for it, after its title. */
export const renderForSearch: Render = (source, environment, markdown) => {
  const html = markdown.render(source, environment);
  const { frontmatter = {}, relativePath } = environment;
  if (frontmatter['search'] === false) return '';
  const file = Object.keys(KEYWORDS).find((one) => `${routeOf(one)}.md` === relativePath);
  const words = file === undefined ? '' : `<p>${KEYWORDS[file]?.join(' ')}</p>`;
  return html.replace('</h1>', `</h1>${words}`);
};
