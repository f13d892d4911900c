import { type Comparison, typical } from '../../compare/comparison.ts';
import { comparisonSection, rateChart, tripsSection } from '../../compare/tables.ts';
import type { Section } from '../../report/section.ts';
import type { KindsReport } from './measure.ts';

export function sectionsOf({ comparisons, trips }: KindsReport): Section[] {
  const sections = comparisons.map((comparison) => {
    const section = comparisonSection(comparison);
    const note = notes[comparison.id];
    if (comparison.contended) {
      const chart = { ...rateChart(comparison), unit: 'grants/s' };
      return { ...section, table: grantsTable(comparison, section), chart };
    }
    return note === undefined ? section : { ...section, note };
  });
  return trips === undefined ? sections : [...sections, tripsSection(trips)];
}

const notes: Readonly<Record<string, string>> = {
  all: '`exclusive` is one lock: what one of the five costs.',
  quorum: 'Requests and server times are of the first of the three servers, and all three share one core.',
};

/** Of a semaphore there are grants, and no gap from one holder to the next. */
function grantsTable({ contenders }: Comparison, { table }: Section): Section['table'] {
  const gaps = ['gap ms', 'gap/PING', 'gap/rested', '× poll'];
  const kept = table.heading.flatMap((title, column) => (gaps.includes(title) ? [] : [column]));
  const only = (cells: readonly string[]): string[] => kept.map((column) => cells[column] ?? '');
  const heading = only(table.heading).map((title) => (title === 'hand-offs/s' ? 'grants/s' : title));
  return {
    heading: [...heading, 'p50 of a PING, µs'],
    lines: table.lines.map((line, index) => {
      const result = contenders[index];
      const ping = result ? typical(result, ({ pingMs = Number.NaN }) => pingMs) : Number.NaN;
      return [...only(line), (1000 * ping).toFixed(0)];
    }),
  };
}
