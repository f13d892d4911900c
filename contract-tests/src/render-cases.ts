/** Renders the page of every case of the conformance suite, on every backend and on other versions of servers. */
import { conformanceCases, type Outcome } from '@locks/core/conformance';
import { markdownTable } from './markdown-table.ts';
import { type Matrix, outcomeIn } from './matrix.ts';
import { type KeptOutcome, type ServerResult, titleOf } from './server-results.ts';

const SIGNS: Readonly<Record<Outcome, string>> = {
  passed: '✓',
  failed: '✗ failed',
  'not-applicable': '–',
  untested: '? untested',
  waived: '(waived)',
};

export function renderCases(matrix: Matrix, others: readonly ServerResult[]): string {
  const { backends } = matrix;
  return [
    '# Compatibility: every case',
    '',
    'Each row is a case of the [conformance suite](../guides/write-a-backend.md) and names its clause of [the specification](../spec.md).',
    '✓ passed · – does not apply: the backend does not declare it, and the suite shows that the request is refused. [The summary](../compatibility.md).',
    '',
    ...tableOf(['case', 'clause', ...backends], ({ id, clause }) => [
      clause,
      ...backends.map((backend) => outcomeIn(matrix, id, backend)),
    ]),
    '',
    '## Other versions of the servers',
    '',
    'A case that is newer than a run is shown as not run.',
    '',
    ...tableOf(['case', ...others.map(titleOf)], ({ id }) => others.map(({ cases }) => cases[id])),
    '',
  ].join('\n');
}

/** A row for each case, and below them the reasons that the cells name by numbers. */
function tableOf(
  head: readonly string[],
  cells: (one: (typeof conformanceCases)[number]) => readonly (string | KeptOutcome | undefined)[],
): string[] {
  const reasons = new Map<string, number>();
  const rows = conformanceCases.map((one) => [
    one.id,
    ...cells(one).map((cell) => (typeof cell === 'string' ? cell : shown(cell, reasons))),
  ]);
  const notes = [...reasons].map(([reason, mark]) => `${mark}. ${reason}`);
  return [...markdownTable(head, rows), ...(notes.length === 0 ? [] : ['', ...notes])];
}

function shown(found: KeptOutcome | undefined, reasons: Map<string, number>): string {
  if (found === undefined) return 'not run';
  const { outcome, reason } = found;
  if (reason === undefined || outcome === 'failed') return SIGNS[outcome];
  if (!reasons.has(reason)) reasons.set(reason, reasons.size + 1);
  return `${SIGNS[outcome]} ${reasons.get(reason)}`;
}
