import { expect, it } from 'vitest';
import type { BarChart, GrowthChart } from '../src/report/chart.ts';
import { spreadOf } from '../src/report/chart.ts';
import { chartSvg } from '../src/report/chart-svg.ts';

const bars: BarChart = {
  kind: 'bars',
  id: 'keys',
  title: '64 keys <at once>',
  unit: 'pairs/s',
  better: 'more',
  digits: 0,
  bars: [
    { name: 'raw', ours: false, median: 500, least: 400, most: 1_000 },
    { name: '@locks/redis-node', ours: true, median: 250 },
  ],
};
const growth: GrowthChart = {
  ...bars,
  kind: 'growth',
  id: 'waiters',
  along: 'waiters',
  digits: 1,
  curves: [
    {
      name: 'mysql',
      points: [
        { at: 1, median: 1 },
        { at: 100, median: 10 },
        { at: 10_000, median: 100 },
      ],
    },
    { name: 'flat', points: [{ at: 1, median: 1 }] },
  ],
};
const attributes = (svg: string, element: RegExp): string[] =>
  [...svg.matchAll(element)].map((found) => found[1] ?? '');

it('draws bars as long as their medians, and a line from the least to the most', () => {
  const svg = chartSvg('redis-keys', bars, '2026-11-21');
  expect(attributes(svg, /<rect [^>]*width="([\d.]+)"/g).map(Number)).toEqual([202, 101]);
  expect(attributes(svg, /<rect class="([\w-]+)"/g)).toEqual(['chart-other', 'chart-ours']);
  const [spread] = svg.matchAll(/chart-spread" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"/g);
  expect(spread?.slice(1).map(Number)).toEqual([169.6, 412]);
});

it('says in words what it shows, and has colours for both themes', () => {
  const svg = chartSvg('redis-keys', bars, '2026-11-21');
  expect(svg).toContain('aria-labelledby="redis-keys-title redis-keys-desc"');
  expect(svg).toContain('<title id="redis-keys-title">64 keys &lt;at once&gt;</title>');
  expect(svg).toContain('pairs/s, more is better. raw: 500 (400 to 1 000); @locks/redis-node: 250.</desc>');
  expect(svg).toContain('@media(prefers-color-scheme:dark)');
});

it('draws what grows tenfold in each decade as a straight line, on axes that begin and end at powers of ten', () => {
  const svg = chartSvg('all-waiters', growth, '2026-11-21');
  const [line = ''] = attributes(svg, /<polyline [^>]*points="([^"]+)"/g);
  const points = line.split(' ').map((point) => point.split(',').map(Number));
  expect(points).toEqual([
    [58, 252],
    [223, 132],
    [388, 12],
  ]);
  for (const tick of ['1', '10', '100', '1 000', '10 000']) expect(svg).toContain(`>${tick}</text>`);
  expect(svg).toContain('mysql: 1.0 at 1 waiters, 10.0 at 100 waiters, 100.0 at 10 000 waiters');
});

it('breaks what is said of the run into lines that fit', () => {
  const svg = chartSvg(
    'redis-keys',
    bars,
    '2026-11-21; a processor of a long name @ 3.90 GHz, 2 cores; medians of 5 rounds; QUICK',
  );
  expect(attributes(svg, /chart-foot" [^>]*>([^<]*)</g)).toEqual([
    'pairs/s, more is better',
    '2026-11-21; a processor of a long name @ 3.90 GHz, 2 cores',
    'medians of 5 rounds; QUICK',
  ]);
});

it('takes the median of rounds, and no spread of a single one', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, least: 1, most: 3 });
  expect(spreadOf([3])).toEqual({ median: 3 });
});
