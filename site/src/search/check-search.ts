import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import MiniSearch from 'minisearch';
import { routeOf } from '../documents.ts';
import { KEYWORDS } from './keywords.ts';
import { miniSearch } from './options.ts';

export interface SearchTrials {
  /** How many words find their document first. */
  readonly found: number;
  /** Words that find another document first. */
  readonly problems: readonly string[];
  /** Words whose document does not exist yet: nothing was tried. */
  readonly absent: readonly string[];
}

/** Asks the index of the built site for each word of {@link KEYWORDS}, as the box on the pages does. */
export async function trySearch(folder: string, documents: readonly string[]): Promise<SearchTrials> {
  const index = await readIndex(folder);
  const problems: string[] = [];
  const absent: string[] = [];
  let found = 0;
  for (const [file, words] of Object.entries(KEYWORDS)) {
    for (const word of words) {
      if (!documents.includes(file)) {
        absent.push(`${word}: ${file}`);
        continue;
      }
      const pages = index.search(word).map(({ id }) => String(id).replace(/(\.html)?(#.*)?$/, ''));
      if (pages[0] === `/${routeOf(file)}`) found += 1;
      else problems.push(`"${word}" finds ${pages[0] ?? 'nothing'} first, and not ${file}`);
    }
  }
  return { found, problems, absent };
}

async function readIndex(folder: string): Promise<MiniSearch> {
  const [file] = globSync('assets/chunks/@localSearchIndexroot.*.js', { cwd: folder });
  if (file === undefined) throw new Error('the site was built without an index of its search');
  const { default: text } = (await import(pathToFileURL(join(folder, file)).href)) as { default: string };
  // As VPLocalSearchBox.vue of VitePress loads it.
  return MiniSearch.loadJSON(text, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    ...miniSearch.options,
    searchOptions: miniSearch.searchOptions ?? {},
  });
}
