/** A table of text: first line the heading. The first column is left-aligned, the others right-aligned. */
export interface Table {
  readonly heading: readonly string[];
  readonly lines: readonly (readonly string[])[];
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
