import MiniSearch from 'minisearch';
import { expect, it } from 'vitest';
import { KEYWORDS } from '../src/search/keywords.ts';
import { miniSearch } from '../src/search/options.ts';

const { tokenize } = miniSearch.options ?? {};
const { boostDocument } = miniSearch.searchOptions ?? {};

it('has the name of an error code as one word, and its parts', () => {
  expect(tokenize?.('rejects with LOCK_TIMEOUT.')).toEqual([
    'rejects',
    'with',
    'LOCK',
    'TIMEOUT',
    'LOCK_TIMEOUT',
  ]);
});

it('puts the document first that is listed for a word, whatever the others say of it', () => {
  const index = new MiniSearch({ fields: ['title', 'text'], ...miniSearch.options });
  index.addAll([
    { id: '/backends/zookeeper.html#install', title: 'Install', text: 'install install install' },
    { id: '/getting-started.html', title: 'Getting started', text: 'install and lock' },
  ]);
  const found = index.search('install', miniSearch.searchOptions);
  expect(found.map(({ id }) => id)[0]).toBe('/getting-started.html');
});

it('puts the reference behind the documents, except the page of the symbol that was typed', () => {
  const weightOf = (id: string, term: string) => boostDocument?.(id, term, {});
  expect(weightOf('/api/@locks/core/interfaces/Lock.html#acquire', 'acquire')).toBeLessThan(1);
  expect(weightOf('/api/@locks/core/functions/createLocks.html', 'createlocks')).toBe(1);
  expect(weightOf('/guides/production.html', 'acquire')).toBe(1);
});

it('reaches the pages as text', () => {
  // VitePress writes functions of its configuration into the pages so.
  // oxlint-disable-next-line typescript/no-implied-eval
  const again = new Function(`return ${String(boostDocument)}`)() as typeof boostDocument;
  expect(again?.('/backends/redis.html#how-it-works', 'nx', {})).toBeGreaterThan(1);
});

it('lists each word once, in one piece', () => {
  const words = Object.values(KEYWORDS).flat();
  expect(new Set(words.map((word) => word.toLowerCase())).size).toBe(words.length);
  expect(words.filter((word) => /\s/.test(word))).toEqual([]);
});
