import { readFileSync, writeFileSync } from 'node:fs';
import { whole } from '../report/figures.ts';
import { markdownTable, tableOf } from '../report/table.ts';
import { loadOf, type StoreCosts } from './calculator.ts';
import { costSection, fleetSection } from './sections.ts';

const PAGE = new URL('../../../docs/sizing.md', import.meta.url);
const RESULTS = new URL('../../results/sizing.json', import.meta.url);
const BLOCK =
  /(?<=<!-- (\w+): written from benchmarks\/results\/sizing\.json -->\n\n)[^]*?(?=\n\n<!-- end -->)/g;

/** The part of a core that is planned with. */
const PLANNED = 0.7;
const TTL_MS = 30_000;
const idle = { acquiresPerSecond: 0, contended: 0, processes: 0, holders: 0, waiters: 0, ttlMs: TTL_MS };

/** Writes the tables of docs/sizing.md. */
export function writeSizingPage(): void {
  writeFileSync(PAGE, rendered());
}

export function problemsOfSizingPage(): string[] {
  return readFileSync(PAGE, 'utf8') === rendered()
    ? []
    : ['docs/sizing.md is not what its results say: run npm run update'];
}

function rendered(): string {
  const { source, figures } = JSON.parse(readFileSync(RESULTS, 'utf8')) as {
    readonly source: string;
    readonly figures: readonly StoreCosts[];
  };
  const servers = figures.filter(({ fleets }) => fleets.length > 0);
  const fleets = fleetSection(servers);
  const blocks: Readonly<Record<string, () => string>> = {
    source: () => `Measured ${source}.`,
    costs: () => markdownTable(costSection(figures).table),
    processes: () => `${markdownTable(fleets.table)}\n\n${fleets.note}`,
    capacity: () => capacity(servers),
    many: () => many(servers),
  };
  return readFileSync(PAGE, 'utf8').replace(BLOCK, (_, name: string) => (blocks[name] as () => string)());
}

/** How much of one thing alone takes 70 % of a core. */
function capacity(figures: readonly StoreCosts[]): string {
  const most = (times: number, load: Partial<typeof idle>) => (costs: StoreCosts) => {
    const { cores } = loadOf(costs, { ...idle, ...load });
    const value = Number(((PLANNED * times) / cores).toPrecision(2));
    return Number.isFinite(value) ? whole(value) : '';
  };
  return markdownTable(
    tableOf(figures, [
      ['70 % of a core', ({ backend }) => backend],
      ['acquires/s', most(1, { acquiresPerSecond: 1 })],
      ['hand-offs/s', most(1, { acquiresPerSecond: 1, contended: 1 })],
      ['while 100 processes wait', (costs) => handOffs(costs, 100)],
      ['processes with one lease each', most(100, { processes: 100, holders: 100 })],
      ['with one waiter each, too', most(100, { processes: 100, holders: 100, waiters: 100 })],
    ]),
  );
}

/** How many hand-offs a second alone take 70 % of a core, while so many processes wait. */
function handOffs(costs: StoreCosts, waiters: number): string {
  if ((costs.fleets.at(-1)?.processes ?? 0) < waiters) return '';
  const load = { ...idle, processes: waiters, waiters, contended: 1 };
  const each = loadOf(costs, { ...load, acquiresPerSecond: 1 }).cores - loadOf(costs, load).cores;
  return whole(Number((PLANNED / each).toPrecision(2)));
}

/** What a hundred times as many processes would need as were tried. */
function many(figures: readonly StoreCosts[]): string {
  const processes = 100_000;
  const load = { ...idle, processes, holders: processes, waiters: processes };
  const of = (cell: (load: ReturnType<typeof loadOf>) => string) => (costs: StoreCosts) =>
    cell(loadOf(costs, load));
  return markdownTable(
    tableOf(figures, [
      ['100 000 processes, a lease and a waiter each', ({ backend }) => backend],
      ['cores', of(({ cores }) => cores.toFixed(1))],
      ['requests/s', of(({ requestsPerSecond }) => whole(requestsPerSecond))],
      ['connections', of(({ connections }) => whole(connections))],
      ['server GB', of(({ bytes }) => (bytes / 2 ** 30).toFixed(0))],
      [
        '`list`: s of the server',
        ({ listed }) => (listed ? ((processes * listed.serverMicros) / 1e6).toFixed(1) : 'none'),
      ],
    ]),
  );
}
