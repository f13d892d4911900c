import { median } from '../measure/quantiles.ts';

/** The picture of a row: figures that are written into `results/SUITE.json`, and from there drawn into `pictures/SUITE-ID.svg`. */
export type Chart = BarChart | GrowthChart;

interface ChartHead {
  /** Unique in its suite; part of the picture's file name. */
  readonly id: string;
  /** The heading above the picture in the document. */
  readonly title: string;
  readonly unit: string;
  readonly better: 'more' | 'less';
  /** Decimals of each figure, as in the table. */
  readonly digits: number;
}

/** A median of rounds, with the least and the most of them where they are known. */
export interface Spread {
  readonly median: number;
  readonly least?: number;
  readonly most?: number;
}

/** One bar for each contender. */
export interface BarChart extends ChartHead {
  readonly kind: 'bars';
  readonly bars: readonly (Spread & { readonly name: string; readonly ours: boolean })[];
}

/** One curve for each contender, both axes logarithmic. */
export interface GrowthChart extends ChartHead {
  readonly kind: 'growth';
  /** What grows along the horizontal axis: `waiters`. */
  readonly along: string;
  readonly curves: readonly {
    readonly name: string;
    readonly points: readonly (Spread & { readonly at: number })[];
  }[];
}

/** A bar for each contender, of the values of its rounds. */
export function barChart(
  head: Omit<BarChart, 'kind' | 'bars'>,
  bars: readonly { readonly name: string; readonly ours: boolean; readonly values: readonly number[] }[],
): BarChart {
  return {
    kind: 'bars',
    ...head,
    bars: bars.map(({ name, ours, values }) => ({ name, ours, ...spreadOf(values) })),
  };
}

/** Of the rounds of one contender. */
export function spreadOf(values: readonly number[]): Spread {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)].map((value) =>
    Number(value.toPrecision(9)),
  ) as [number, number, number];
  return values.length > 1 ? { median: middle, least, most } : { median: middle };
}

/** `![…](../pictures/redis-keys.svg)`, for a page from which the pictures are in `folder`. */
export function pictureLink(suite: string, { id, title, unit }: Chart, folder: string): string {
  const alternative = title.endsWith(unit) ? title : `${title}: ${unit}`;
  return `![${alternative}](${folder}/${suite}-${id}.svg)`;
}
