// Draws what a run of the demo printed (docs/images/demo.txt) as SVG: two bars, sold without and with the lock. The
// picture has a background of its own, so it can be read on a page of either theme.

const WIDTH = 640;
const HEIGHT = 290;
const LEFT = 24;
const RIGHT = WIDTH - LEFT;

/** @typedef {'light' | 'dark'} Theme */

const FONT =
  'text{font:15px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.demo-on-bar{fill:#fff;font-weight:600}';
const COLOURS = {
  light:
    '.demo-page{fill:#f6f8fa;stroke:#d1d9e0}.demo-text{fill:#1f2328}.demo-quiet{fill:#59636e}' +
    '.demo-sold{fill:#1a7f37}.demo-over{fill:#cf222e}.demo-mark{stroke:#1f2328;stroke-width:2}',
  dark:
    '.demo-page{fill:#151b23;stroke:#3d444d}.demo-text{fill:#f0f6fc}.demo-quiet{fill:#9198a1}' +
    '.demo-sold{fill:#238636}.demo-over{fill:#da3633}.demo-mark{stroke:#f0f6fc;stroke-width:2}',
};

/**
 * @param {string} output what the demo printed
 * @param {Theme} [theme] its colours; without one those of the reader's system
 * @returns {string} the picture as SVG
 */
export function drawDemo(output, theme) {
  const { processes, units, backend, unlocked, locked } = readDemo(output);
  const either = `${COLOURS.light}@media(prefers-color-scheme:dark){${COLOURS.dark}}`;
  const colours = theme === undefined ? either : COLOURS[theme];
  const scale = (RIGHT - LEFT) / Math.max(unlocked.sold, locked.sold, units);
  const stockAt = LEFT + units * scale;
  const title = `${processes} sell ${units} units at once`;
  const description = `Without a lock they sold ${unlocked.sold}, ${unlocked.oversold} more than there were. With the lock they sold ${locked.sold}.`;
  const parts = [
    text(LEFT, 38, 'demo-quiet', '$ npm run demo'),
    text(LEFT, 66, 'demo-text', title),
    text(LEFT, 112, 'demo-text', 'without a lock'),
    ...bar(122, unlocked, scale),
    text(stockAt + 12, 143, 'demo-on-bar', `${unlocked.oversold} of them did not exist`),
    text(LEFT, 186, 'demo-text', 'with the lock'),
    ...bar(196, locked, scale),
    text(stockAt + 12, 217, 'demo-text', locked.oversold === 0 ? 'none oversold' : 'oversold'),
    `<line class="demo-mark" x1="${at(stockAt)}" y1="98" x2="${at(stockAt)}" y2="236"/>`,
    text(stockAt + 12, 112, 'demo-quiet', `${units} in stock`),
    text(LEFT, 266, 'demo-quiet', `The lock is in ${backend}. --backend NAME takes another store.`),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="demo" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="demo-title demo-desc">`,
    `<title id="demo-title">${title}</title>`,
    `<desc id="demo-desc">${description}</desc>`,
    `<style>${FONT}${colours}</style>`,
    `<rect class="demo-page" x="1" y="1" width="${WIDTH - 2}" height="${HEIGHT - 2}" rx="10"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** @typedef {{ sold: number, oversold: number }} Row */

/** @param {string} output */
function readDemo(output) {
  const [, processes, units, backend] =
    /^(\d+ processes) sell (\d+) units at once; the lock is in (\S+)/m.exec(output) ?? [];
  if (processes === undefined || units === undefined || backend === undefined)
    throw new Error('docs/images/demo.txt is not what `npm run -s demo` prints');
  const unlocked = readRow(output, 'without a lock');
  const locked = readRow(output, 'with the lock');
  return { processes, units: Number(units), backend, unlocked, locked };
}

/**
 * @param {string} output
 * @param {string} title
 * @returns {Row}
 */
function readRow(output, title) {
  const line = output.split('\n').find((candidate) => candidate.startsWith(title));
  const [, , sold = '', oversold = ''] = (line ?? '').split(/ {2,}/);
  if (sold === '') throw new Error(`docs/images/demo.txt has no row "${title}"`);
  return { sold: Number(sold), oversold: Number(oversold) };
}

/**
 * @param {number} y
 * @param {Row} row
 * @param {number} scale
 */
function bar(y, { sold, oversold }, scale) {
  const exact = (sold - oversold) * scale;
  const rest = oversold * scale;
  return [
    `<rect class="demo-sold" x="${LEFT}" y="${y}" width="${at(exact)}" height="32"/>`,
    ...(oversold > 0
      ? [`<rect class="demo-over" x="${at(LEFT + exact)}" y="${y}" width="${at(rest)}" height="32"/>`]
      : []),
    text(LEFT + 10, y + 21, 'demo-on-bar', `${sold} sold`),
  ];
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} kind
 * @param {string} content
 */
function text(x, y, kind, content) {
  return `<text class="${kind}" x="${at(x)}" y="${y}">${content}</text>`;
}

/** @param {number} value */
function at(value) {
  return String(Math.round(value * 10) / 10);
}
