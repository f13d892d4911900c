import { plainText, tablesOf } from '../markdown-table.ts';

/** The columns that are drawn, the first one that a table has. */
const DRAWN = ['hand-offs/s', '32 waiters: hand-offs/s', 'grants/s', 'pairs/s'];
const WIDTH = 680;
const ROW = 26;
const NAMES = 210;
const FIGURES = 70;

/** The text of benchmarks/README.md with a picture above each table of results that has a rate. */
export function withBarCharts(text: string): string {
  const lines = text.split('\n');
  for (const table of tablesOf(text).reverse()) {
    const column = DRAWN.map((name) => table.heading.indexOf(name)).find((index) => index > 0);
    if (column === undefined || table.heading[0] !== '') continue;
    const bars = table.rows
      .map((row) => ({ name: plainText(row[0] ?? ''), figure: row[column] ?? '' }))
      .filter(({ figure }) => Number.isFinite(numberOf(figure)));
    if (bars.length > 1) lines.splice(table.line, 0, barChart(table.heading[column] ?? '', bars), '');
  }
  return lines.join('\n');
}

interface Bar {
  readonly name: string;
  /** As the table writes it: `3 049`. */
  readonly figure: string;
}

/** An SVG in one line, as Markdown needs it; its colours are those of the page's theme. Ours are marked with `*` in the tables. */
function barChart(unit: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ figure }) => numberOf(figure)));
  const height = bars.length * ROW + 8;
  const rows = bars.map(({ name, figure }, index) => {
    const y = index * ROW + 4;
    const length = Math.max(1, (numberOf(figure) / most) * (WIDTH - NAMES - FIGURES - 16));
    const kind = name.startsWith('@locks/') || name.endsWith('*') ? 'ours' : 'other';
    return [
      `<text x="${NAMES - 8}" y="${y + 17}" text-anchor="end">${escaped(name.replace(/ \*$/, ''))}</text>`,
      `<rect class="${kind}" x="${NAMES}" y="${y + 3}" width="${length.toFixed(1)}" height="${ROW - 8}" rx="2"/>`,
      `<text x="${(NAMES + length + 8).toFixed(1)}" y="${y + 17}">${escaped(figure)}</text>`,
    ].join('');
  });
  const label = `${unit}: ${bars.map(({ name, figure }) => `${name} ${figure}`).join(', ')}`;
  return `<figure class="bar-chart"><svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(label)}">${rows.join('')}</svg><figcaption>${unit}: more is better</figcaption></figure>`;
}

/** `≥ 3 049` is 3049. */
function numberOf(figure: string): number {
  const digits = figure.replaceAll(/[\s\u00a0\u2009\u202f≥≤]/g, '');
  return digits === '' ? Number.NaN : Number(digits);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
