/** Writes the pages that only the site has, from data that is kept: every case, which proofs each clause has, the tables of the lab, the track record. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keptReports, renderGuaranteeTables } from './lab/render-guarantees.ts';
import { markdownTable } from './markdown-table.ts';
import { readMatrix } from './matrix.ts';
import { renderCases } from './render-cases.ts';
import { renderClauses } from './render-clauses.ts';
import { keptResults } from './server-results.ts';

const docs = join(import.meta.dirname, '../../docs');
const folder = join(docs, 'generated');
const pages: Readonly<Record<string, string>> = {
  'clauses.md': renderClauses(),
  'compatibility-cases.md': renderCases(readMatrix(), keptResults()),
  'guarantees.md': renderGuaranteeTables(keptReports()),
  'track-record.md': trackRecord(),
};

mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(pages)) writeFileSync(join(folder, name), text);

function trackRecord(): string {
  const bugs = JSON.parse(readFileSync(join(docs, 'track-record.json'), 'utf8')) as Readonly<
    Record<'date' | 'consequence' | 'foundBy' | 'repeat', string> & { checked: boolean }
  >[];
  const rows = bugs.map(({ date, consequence, foundBy, repeat, checked }) =>
    [date, consequence, foundBy, repeat, checked ? 'yes' : 'no'].map((cell) =>
      cell.replaceAll('|', String.raw`\|`),
    ),
  );
  return [
    '# Track record: every bug',
    '',
    '[How a finding is repeated](../track-record.md#repeat-a-finding).',
    '',
    ...markdownTable(['date', 'what could happen', 'found by', 'command', 'checked'], rows),
    '',
  ].join('\n');
}
