import { readFileSync, writeFileSync } from 'node:fs';

const readme = new URL('../../README.md', import.meta.url);

/** Puts generated text between the two markers of a suite in the README. */
export function replaceSection(suite: string, text: string): void {
  const [begin, end] = [`<!-- results: ${suite} -->`, `<!-- end of results: ${suite} -->`];
  const old = readFileSync(readme, 'utf8');
  const [from, to] = [old.indexOf(begin), old.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`benchmarks/README.md has no markers ${begin} and ${end}.`);
  writeFileSync(readme, `${old.slice(0, from)}${begin}\n\n${text}\n\n${old.slice(to)}`);
}
