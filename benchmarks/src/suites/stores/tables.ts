import { comparisonSection, killedSection, tripsSection, waitingSection } from '../../compare/tables.ts';
import type { Section } from '../../report/section.ts';
import type { StoreReport } from './measure.ts';

export function sectionsOf(report: StoreReport): Section[] {
  const { comparisons, trips, waiting, killed } = report;
  return [
    ...comparisons.map(comparisonSection),
    ...(comparisons.length > 0 ? [operationsSection(report)] : []),
    ...(trips === undefined ? [] : [tripsSection(trips)]),
    ...(waiting === undefined ? [] : [waitingSection(waiting)]),
    ...(killed === undefined ? [] : [killedSection(killed)]),
  ];
}

/** Operations below this share of an acquisition belong to background work, and would only fill the table. */
const WORTH_A_LINE = 0.005;

function operationsSection({ comparisons, counting }: StoreReport): Section {
  const lines = comparisons.flatMap(({ id, contenders }) =>
    contenders.flatMap(({ name, counted: { byCommand, operations } }) =>
      Object.entries(byCommand)
        .filter(([, count]) => count / operations >= WORTH_A_LINE)
        .sort(([, one], [, other]) => other - one)
        .map(([kind, count]) => [id, name, cell(kind), (count / operations).toFixed(2)]),
    ),
  );
  return {
    title: 'What the server was asked, per acquisition',
    table: { heading: ['row', '', 'operation', 'times'], lines },
    note: `Counted by ${counting}.`,
  };
}

/** SQL in a table of Markdown. */
function cell(kind: string): string {
  return `\`${kind.replaceAll('|', '\\|')}\``;
}
