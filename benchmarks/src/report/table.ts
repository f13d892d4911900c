/** A table of text: first line the heading. The first column is left-aligned, the others right-aligned. */
export interface Table {
  readonly heading: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

/** A column: its heading, and its cell in each line. */
export type Column<T> = readonly [heading: string, cell: (line: T) => string];

/** `false`: no such column in this table. */
export function tableOf<T>(lines: readonly T[], columns: readonly (Column<T> | false)[]): Table {
  const kept = columns.filter((column) => column !== false);
  return {
    heading: kept.map(([heading]) => heading),
    lines: lines.map((line) => kept.map(([, cell]) => cell(line))),
  };
}

/** For a terminal. */
export function plainTable({ heading, lines }: Table): string {
  const all = [heading, ...lines];
  const widths = heading.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)));
  const [first, ...rest] = all.map((line) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
  return [first, '-'.repeat(first?.length ?? 0), ...rest].join('\n');
}

export function markdownTable({ heading, lines }: Table): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    row(heading),
    row(heading.map((_, column) => (column === 0 ? '---' : '--:'))),
    ...lines.map(row),
  ].join('\n');
}
