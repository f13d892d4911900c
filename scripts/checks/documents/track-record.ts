const BLOCK =
  /(?<=<!-- counts: written by npm run update from docs\/track-record\.json -->\n)[^]*?(?=<!-- end -->)/;

/** What `foundBy` begins with, and what the head of the page calls it. */
const FINDERS: readonly (readonly [start: RegExp, name: string])[] = [
  [/^\(?(test on a real server|fault test)\)?/, 'tests and fault tests on real servers'],
  [/^simulation/, 'the [simulation](simulation.md)'],
  [/^outside tests?/, 'outside tests'],
  [/^(\(?suite\)?|random steps of the suite)/, 'the [conformance suite](compatibility.md)'],
  [/^\(?unit test\)?/, 'unit tests'],
  [/^review/, 'reviews'],
  [/^another judge/, '[another judge](histories.md#another-judge)'],
  [/^benchmark/, 'benchmarks'],
  [/^(load|random faults|repetition)$/, 'load, random faults and repeated tests'],
  [/^not recorded$/, 'not recorded'],
];

/** The page with the numbers at its head counted from the bugs of docs/track-record.json. */
export function withCounts(page: string, bugs: readonly { readonly foundBy: string }[]): string {
  if (!BLOCK.test(page)) throw new Error('the track record has no block for its counts');
  const counts = new Map<string, number>();
  for (const { foundBy } of bugs) {
    const [, name] = FINDERS.find(([start]) => start.test(foundBy)) ?? [];
    if (name === undefined)
      throw new Error(`the track record does not know who "${foundBy}" is: see FINDERS`);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const finders = [...counts].toSorted(([, a], [, b]) => b - a).map(([name, count]) => `${name} ${count}`);
  return page.replace(BLOCK, () =>
    [
      `Bugs found so far in safety or liveness: **${bugs.length}**, all fixed. There are no outside users yet.`,
      '',
      `- **What found them.** ${finders.join(', ').replace(/^[a-z]/, (letter) => letter.toUpperCase())}.`,
      '',
    ].join('\n'),
  );
}
