import { type Chart, pictureLink } from './chart.ts';
import { markdownTable, plainTable, type Table } from './table.ts';

/** A part of a report: a table and what it shows. */
export interface Section {
  readonly title: string;
  readonly table: Table;
  /** What to know of it, below the table. */
  readonly note?: string;
  /** What a picture of it shows, above the table. */
  readonly chart?: Chart;
}

/** For a terminal. */
export function plainSection({ title, table, note }: Section): string {
  return [title, plainTable(table), ...(note === undefined ? [] : [note])].join('\n\n');
}

export function markdownSection(suite: string, { title, table, note, chart }: Section): string {
  return [
    `## ${title}`,
    ...(chart === undefined ? [] : [pictureLink(suite, chart, '../pictures')]),
    markdownTable(table),
    ...(note === undefined ? [] : [note]),
  ].join('\n\n');
}
