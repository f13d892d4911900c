/** A table of a Markdown document. */
export interface MarkdownTable {
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The tables of a text, each with the number of the line at which it begins. */
export function tablesOf(text: string): (MarkdownTable & { readonly line: number })[] {
  const lines = text.split('\n');
  const isRow = (index: number) => lines[index]?.startsWith('|') === true;
  return lines.flatMap((_, line) => {
    if (!isRow(line) || isRow(line - 1) || !/^\|[ :|-]+\|$/.test(lines[line + 1] ?? '')) return [];
    let end = line + 2;
    while (isRow(end)) end += 1;
    const [heading = [], , ...rows] = lines.slice(line, end).map(cellsOf);
    return [{ line, heading, rows }];
  });
}

/** `\|` stands for a bar inside a cell. */
function cellsOf(line: string): string[] {
  return line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** Without links, emphasis and code marks. */
export function plainText(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll(/\*\*|`/g, '');
}
