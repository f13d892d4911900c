import type { BarChart, Chart, GrowthChart, Spread } from './chart.ts';
import { whole } from './figures.ts';

// Narrow enough that the text can be read where the picture fills the width of a phone.
const WIDTH = 420;
const ROW = 32;
const FOOT_LINE = 18;
/** As many characters as fit into the width, in the smaller font. */
const FOOT_LENGTH = 60;
const PLOT = { left: 58, right: 388, top: 12, bottom: 252 };
const LEGEND_LINE = 20;
/** Longer names stand below each other. */
const SHORT_NAME = 20;
/** Curves differ by their dashes too, for those who cannot tell colours apart. */
const DASHES = ['', '7 3', '2 3', '8 3 2 3', '4 2', '1 3', '10 4', '5 3 1 3'];

/** The colours of both themes. A page that shows the picture inline has its own for these classes, and takes no `<style>`. */
const COLOURS = {
  light: ['#1f2328', '#59636e', '#d1d9e0', '#3451b2', '#9aa4b0'],
  dark: ['#f0f6fc', '#9198a1', '#3d444d', '#a8b1ff', '#6b7480'],
};
const CURVES = {
  light: ['#3451b2', '#bc4c00', '#1a7f37', '#8250df', '#cf222e', '#59636e', '#9a6700', '#bf3989'],
  dark: ['#a8b1ff', '#f0883e', '#3fb950', '#bc8cff', '#ff7b72', '#9198a1', '#d29922', '#f778ba'],
};

/**
 * An SVG that can be read in a light and in a dark page, and by who hears it.
 * @param name unique among the pictures of a page
 * @param source when and where it was measured, in a few words
 */
export function chartSvg(name: string, chart: Chart, source: string): string {
  const { body, height } = chart.kind === 'bars' ? bars(chart) : growth(chart);
  const what = `${chart.unit}, ${chart.better} is better`;
  const foot = [what, ...inLines(source)];
  const total = height + foot.length * FOOT_LINE + 8;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 ${WIDTH} ${total}" width="${WIDTH}" height="${total}" role="img" aria-labelledby="${name}-title ${name}-desc">`,
    `<title id="${name}-title">${escaped(chart.title)}</title>`,
    `<desc id="${name}-desc">${escaped(`${what}. ${described(chart)}.`)}</desc>`,
    `<style>${styles(chart.kind)}</style>`,
    ...body,
    ...foot.map((part, index) => text(8, height + 16 + index * FOOT_LINE, part, 'chart-foot')),
    '</svg>',
    '',
  ].join('\n');
}

/** Lines that fit, broken after `;`. */
function inLines(source: string): string[] {
  const lines: string[] = [];
  for (const part of source.split('; ')) {
    const longer = [...lines.slice(-1), part].join('; ');
    if (lines.length > 0 && longer.length <= FOOT_LENGTH) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines;
}

/** A figure as the tables write it. */
export function figureText({ digits }: Chart, value: number): string {
  return digits === 0 ? whole(value) : value.toFixed(digits);
}

function bars(chart: BarChart): { body: string[]; height: number } {
  const most = Math.max(...chart.bars.map((bar) => bar.most ?? bar.median));
  const length = (value: number): number => (value / most) * (WIDTH - 16);
  const body = chart.bars.flatMap((bar, index) => {
    const y = index * ROW + 4;
    return [
      text(8, y + 13, bar.name, 'chart-text'),
      text(WIDTH - 8, y + 13, figureText(chart, bar.median), 'chart-text', 'end'),
      `<rect class="chart-${bar.ours ? 'ours' : 'other'}" x="8" y="${y + 18}" width="${fixed(Math.max(1, length(bar.median)))}" height="8" rx="1"/>`,
      ...whisker(bar, (value) => [8 + length(value), y + 22]),
    ];
  });
  return { body, height: chart.bars.length * ROW + 4 };
}

function growth(chart: GrowthChart): { body: string[]; height: number } {
  const points = chart.curves.flatMap((curve) => curve.points);
  const [x, y] = [decades(points.map(({ at }) => at)), decades(points.flatMap(limitsOf))];
  const place = (at: number, value: number): [number, number] => [
    PLOT.left + x.part(at) * (PLOT.right - PLOT.left),
    PLOT.bottom - y.part(value) * (PLOT.bottom - PLOT.top),
  ];
  const [[first = 1], [lowest = 1]] = [x.ticks, y.ticks];
  const grid = [
    ...x.ticks.flatMap((tick) => {
      const [at] = place(tick, lowest);
      return [
        line('chart-grid', [at, PLOT.top], [at, PLOT.bottom]),
        text(at, PLOT.bottom + 16, short(tick), 'chart-foot', 'middle'),
      ];
    }),
    ...y.ticks.flatMap((tick) => {
      const [, at] = place(first, tick);
      return [
        line('chart-grid', [PLOT.left, at], [PLOT.right, at]),
        text(PLOT.left - 6, at + 4, short(tick), 'chart-foot', 'end'),
      ];
    }),
    text((PLOT.left + PLOT.right) / 2, PLOT.bottom + 34, chart.along, 'chart-foot', 'middle'),
  ];
  const columns = chart.curves.every(({ name }) => name.length <= SHORT_NAME) ? 2 : 1;
  const curves = chart.curves.flatMap((curve, index) => {
    const colour = `chart-curve-${index % CURVES.light.length}`;
    const look = `class="chart-curve ${colour}" stroke-dasharray="${DASHES[index % DASHES.length]}"`;
    const path = curve.points.map(({ at, median }) => place(at, median).map(fixed).join(',')).join(' ');
    const [column, row] = [index % columns, Math.floor(index / columns)];
    const [left, top] = [8 + column * 206, PLOT.bottom + 56 + row * LEGEND_LINE];
    return [
      `<polyline ${look} points="${path}"/>`,
      ...curve.points.flatMap((point) => whisker(point, (value) => place(point.at, value), colour)),
      `<polyline ${look} points="${left},${top - 4} ${left + 26},${top - 4}"/>`,
      text(left + 32, top, curve.name, 'chart-text'),
    ];
  });
  const lines = Math.ceil(chart.curves.length / columns);
  return { body: [...grid, ...curves], height: PLOT.bottom + 46 + lines * LEGEND_LINE };
}

/** A logarithmic axis from the power of ten below the values to the one above. */
function decades(values: readonly number[]): { ticks: number[]; part(value: number): number } {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive)) - 1e-9));
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
    part: (value) => Math.max(0, (Math.log10(value) - low) / (high - low)),
  };
}

/** From the least to the most of the rounds: along a bar, or upright in the colour of a curve. */
function whisker(
  { least, most }: Spread,
  place: (value: number) => [number, number],
  colour?: string,
): string[] {
  if (least === undefined || most === undefined) return [];
  const ends = [place(least), place(most)] as const;
  const [dx, dy] = colour === undefined ? [0, 4] : [3, 0];
  const kind = colour ?? 'chart-spread';
  return [line(kind, ...ends), ...ends.map(([x, y]) => line(kind, [x - dx, y - dy], [x + dx, y + dy]))];
}

function described(chart: Chart): string {
  const figure = (spread: Spread): string => {
    const [middle, ...ends] = limitsOf(spread).map((value) => figureText(chart, value));
    return ends.length > 0 ? `${middle} (${ends.join(' to ')})` : `${middle}`;
  };
  if (chart.kind === 'bars') return chart.bars.map((bar) => `${bar.name}: ${figure(bar)}`).join('; ');
  const points = (curve: GrowthChart['curves'][number]): string =>
    curve.points.map((point) => `${figure(point)} at ${whole(point.at)} ${chart.along}`).join(', ');
  return chart.curves.map((curve) => `${curve.name}: ${points(curve)}`).join('; ');
}

function limitsOf({ median, least, most }: Spread): number[] {
  return least === undefined || most === undefined ? [median] : [median, least, most];
}

function styles(kind: Chart['kind']): string {
  const of = (theme: 'light' | 'dark'): string => {
    const [ink, foot, grid, ours, other] = COLOURS[theme];
    return [
      `.chart-text{fill:${ink}}.chart-foot{fill:${foot}}.chart-grid{stroke:${grid}}.chart-spread{stroke:${ink}}`,
      `.chart-ours{fill:${ours}}.chart-other{fill:${other}}`,
      ...(kind === 'growth' ? CURVES[theme] : []).map(
        (colour, index) => `.chart-curve-${index}{stroke:${colour}}`,
      ),
    ].join('');
  };
  const fixedStyle =
    'text{font:14px system-ui,sans-serif}.chart-foot{font-size:12px}.chart-curve{fill:none;stroke-width:2}';
  return `${fixedStyle}${of('light')}@media(prefers-color-scheme:dark){${of('dark')}}`;
}

function line(kind: string, [x1, y1]: readonly number[], [x2, y2]: readonly number[]): string {
  return `<line class="${kind}" x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}"/>`;
}

function text(x: number, y: number, content: string, kind: string, anchor = 'start'): string {
  return `<text class="${kind}" x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}">${escaped(content)}</text>`;
}

function short(tick: number): string {
  return tick >= 1 ? whole(tick) : String(Number(tick.toPrecision(1)));
}

function fixed(value: number | undefined): string {
  return String(Number((value ?? 0).toFixed(1)));
}

function escaped(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
