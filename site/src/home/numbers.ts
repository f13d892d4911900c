import { readRepositoryFile } from '../repository.ts';

/** The bars that the first page of the site draws. */
export interface HomeNumbers {
  /** When and on what the figures were measured. */
  readonly source: string;
  readonly charts: readonly HomeChart[];
}

interface HomeChart {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly HomeBar[];
}

interface HomeBar {
  readonly name: string;
  readonly isOurs: boolean;
  readonly value: string;
  /** Length, of the longest bar. */
  readonly percent: number;
}

interface Results {
  readonly source: string;
  readonly charts: readonly {
    readonly id: string;
    readonly unit: string;
    readonly bars?: readonly { readonly name: string; readonly ours: boolean; readonly median: number }[];
  }[];
}

/** One row in which waiting decides, and one without waiting, in which others are ahead. */
const CHARTS: Readonly<Record<string, string>> = {
  waiters: '32 callers wait for one lock:',
  sequential: 'One caller, nobody waits:',
};

/** What one would use instead; the bare clients and second settings of a library are on the page of the benchmarks. */
const LIBRARIES = [
  '@locks/redis-ioredis',
  '@locks/redis-node',
  'redis-semaphore',
  'redlock',
  'redlock-universal',
  '@verrou/core',
  'simple-redis-mutex',
];

/** Reads the committed medians of the benchmarks on Redis. */
export function readHomeNumbers(
  text: string = readRepositoryFile('benchmarks/results/redis.json'),
): HomeNumbers {
  const results = JSON.parse(text) as Results;
  const charts = Object.entries(CHARTS).map(([id, title]) => {
    const { unit = '', bars = [] } = results.charts.find((chart) => chart.id === id) ?? {};
    const chosen = bars.filter(({ name }) => LIBRARIES.includes(name));
    if (chosen.length < LIBRARIES.length)
      throw new Error(`benchmarks/results/redis.json: the row ${id} lacks a library of the first page`);
    const longest = Math.max(...chosen.map(({ median }) => median));
    return {
      title,
      unit,
      bars: chosen
        .toSorted((a, b) => b.median - a.median)
        .map(({ name, ours, median }) => ({
          name,
          isOurs: ours,
          value: Math.round(median).toLocaleString('en'),
          percent: Math.round((median / longest) * 1_000) / 10,
        })),
    };
  });
  // The bars have no spread.
  return { source: results.source.replace(', least to most', ''), charts };
}
