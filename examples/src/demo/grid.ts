/** Rows as lines of a table: the first column to the left, the others to the right. */
export function grid(rows: readonly (readonly string[])[]): string[] {
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((cellsOfRow) => cellsOfRow[column]?.length ?? 0))) ?? [];
  return rows.map((cellsOfRow) => lineOf(cellsOfRow, widths));
}

/** One line of a table whose columns have these widths. */
export function lineOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    .join('   ');
}
