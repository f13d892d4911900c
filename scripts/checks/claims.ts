import { figureIn } from './documents/benchmark-figures.ts';
import { rowsOf } from './supported-versions.ts';

/** Of the tables in docs/support.md, no store of locks. */
const NO_STORES = ['PgBouncer'];
/** Stores without a server. */
const EMBEDDED = ['SQLite'];
/** Stores that speak the protocol of another one: one backend has both. */
const RELATED: Readonly<Record<string, string>> = { Valkey: 'Redis', MariaDB: 'MySQL' };
const VERSION = String.raw`\d+(?:\.\d+)*`;

/** What docs/support.md says of one store or runtime. */
export interface Tried {
  readonly name: string;
  readonly oldest: string | undefined;
  /** Absent where no test runs on the product itself. */
  readonly newest: string | undefined;
  /** What the tests start, in the words of the page; of a client, what is in the place of its store. */
  readonly started?: string;
}

/** The stores in the table of servers, and after them those that a stand-in tests for a client. */
export function triedStores(support: string): Tried[] {
  const servers = sectionOf(support, 'Servers')
    .filter(([name]) => !NO_STORES.includes(name))
    .map(([name, , oldest = '', started = '', newest = '']) => ({
      name: name.replace(/ (\(|and ).*$/, ''),
      oldest: versionIn(oldest),
      newest: /^none$/.test(newest) || started.endsWith('in its place') ? undefined : versionIn(newest),
      started,
    }));
  const behindBridges = sectionOf(support, 'Clients').flatMap(([, , tried = '']) => {
    const [, started, name] = /^(.+), not (\w+) itself$/.exec(tried) ?? [];
    return name === undefined ? [] : [{ name, oldest: undefined, newest: undefined, started }];
  });
  return [...servers, ...behindBridges];
}

/** Node, Bun and Deno. */
export function triedRuntimes(support: string): Tried[] {
  return sectionOf(support, 'Runtimes')
    .filter(([name]) => ['Node', 'Bun', 'Deno'].includes(name))
    .map(([name, needs, tried = '']) => ({
      name,
      oldest: needs,
      newest: tried.match(new RegExp(VERSION, 'g'))?.at(-1),
    }));
}

/** The stores that a text should name, and does not. */
export function missingStores(text: string, stores: readonly Tried[]): string[] {
  return [...ownStores(stores), ...EMBEDDED].filter(
    (name) => !new RegExp(String.raw`\b${name}\b`, 'i').test(text),
  );
}

/** The same for a page that compares backends. */
export function missingBackends(text: string, stores: readonly Tried[]): string[] {
  return missingStores(
    text,
    stores.filter(({ name }) => RELATED[name] === undefined),
  );
}

/** Without services that have the store of another row. */
function ownStores(stores: readonly Tried[]): string[] {
  return stores.map(({ name }) => name).filter((name) => name !== 'Upstash');
}

/** Where the line "Tested on" has other versions than were tried. */
export function wrongVersions(readme: string, tried: readonly Tried[]): string[] {
  const line = /^- \*\*Tested on:\*\*[^]*?(?=^- \*\*)/m.exec(readme)?.[0] ?? '';
  return tried.flatMap(({ name, oldest, newest }) => {
    const [, first, last = first] =
      new RegExp(String.raw`\b${name} (${VERSION})(?: to (${VERSION}))?`).exec(line) ?? [];
    if (first === oldest && last === newest) return [];
    return [`${name} ${first ?? 'is missing'}, and docs/support.md: ${oldest} to ${newest}`];
  });
}

/** Where the sentence on the lab names other stores without a run than have no kept result. */
export function wrongLabRuns(
  readme: string,
  stores: readonly Tried[],
  labBackends: readonly string[],
): string[] {
  const expected = ownStores(stores).filter((name) => {
    // `postgres-lease-20261124` is of PostgreSQL.
    const store = (RELATED[name] ?? name).toLowerCase();
    return !labBackends.some((backend) => store.startsWith(backend.split('-', 1)[0] ?? ''));
  });
  return differences('runs in the lab', listAfter(readme, 'It has no runs of'), expected);
}

/** Where the sentence on the demo names other backends than it has. */
export function wrongDemoBackends(readme: string, backends: readonly string[]): string[] {
  return differences('backends of the demo', listAfter(readme, 'runs a demo on'), backends);
}

/** What `benchmarks/results/redis.json` has. */
export interface BenchmarkResults {
  readonly date: string;
  readonly rounds: number;
  readonly charts: readonly {
    readonly id: string;
    readonly bars: readonly { readonly name: string; readonly median: number }[];
  }[];
}

/** The rows of the README's table that charts have, and those that only the tables have. */
const CHART_ROWS: Readonly<Record<string, string>> = {
  'hand-offs per second, one process': 'waiters',
  "idle after a killed holder's lease ended, median, ms": 'kill',
};
const TABLE_ROWS: Readonly<Record<string, readonly [section: string, columns: readonly string[]]>> = {
  'wait in 4 processes, median and 99th percentile, ms': [
    '4 processes × 8 waiters, each 10 times',
    ['wait p50', 'p99 ms'],
  ],
  'requests per acquisition and release': ['32 waiters of one process', ['requests']],
};

/** Figures of the README's "Measured" that are not those of the benchmark. */
export function wrongFigures(readme: string, results: BenchmarkResults, tables: string): string[] {
  const text = /^## Measured$[^]*?(?=^## )/m.exec(readme)?.[0] ?? '';
  const [heading = [], ...rows] = rowsOf(text);
  const contenders = heading.slice(1).map((cell) => cell.replaceAll('`', '').replace(/ [\d.]+( beta)?$/, ''));
  const problems: string[] = [];
  const compare = (what: string, shown: string | undefined, measured: readonly (number | string)[]): void => {
    const figures = numbersIn(shown ?? '');
    const isSame =
      figures.length === measured.length &&
      figures.every((figure, index) => figure === rounded(measured[index] as number | string, figure));
    if (!isSame) problems.push(`${what}: ${shown}, and the benchmark: ${measured.join(', ')}`);
  };
  for (const [name = '', ...cells] of rows) {
    const [section = '', columns = []] = TABLE_ROWS[name] ?? [];
    if (CHART_ROWS[name] === undefined && columns.length === 0)
      problems.push(`"${name}" is no row that is compared`);
    for (const [index, contender] of contenders.entries()) {
      const median = medianOf(results, CHART_ROWS[name], contender);
      const measured =
        columns.length > 0
          ? columns.map((column) => figureIn(tables, section, contender, column))
          : median === undefined
            ? undefined
            : [median];
      // Who was not measured in this row has words in its cell: "polls every 100".
      if (measured !== undefined) compare(`${name}, ${contender}`, cells[index], measured);
    }
  }
  const price = /\d[\d ]* pairs of acquire and release[^]*?\.\s/.exec(text)?.[0] ?? '';
  const sequential = [
    '@locks/redis-ioredis',
    'redis-semaphore',
    '@verrou/core',
    'redlock',
    'redlock-universal',
  ];
  compare(
    'without contention',
    price,
    sequential.map((name) => medianOf(results, 'sequential', name) ?? 'missing'),
  );
  for (const part of [`${results.date}`, `medians of ${ROUNDS[results.rounds] ?? results.rounds} rounds`])
    if (!text.includes(part)) problems.push(`no "${part}", of which the results are`);
  return problems;
}

const ROUNDS: Readonly<Record<number, string>> = { 3: 'three', 5: 'five' };

function medianOf({ charts }: BenchmarkResults, id: string | undefined, name: string): number | undefined {
  return charts.find((chart) => chart.id === id)?.bars.find((bar) => bar.name === name)?.median;
}

/** `1 995` of `≥ 1 995`; a number that is part of a name is none. */
function numbersIn(text: string): string[] {
  return (
    text.match(/(?<![\w.-])\d[\d ]*(?:\.\d+)?(?!\w)/g)?.map((number) => number.replaceAll(' ', '')) ?? []
  );
}

/** The measured number with as many decimals as the shown one. */
function rounded(measured: number | string, shown: string): string {
  const number = Number(String(measured).replaceAll(/[≥ ]/g, ''));
  return number.toFixed(shown.split('.')[1]?.length ?? 0);
}

/** `DynamoDB, S3 and NATS` behind the words. */
function listAfter(text: string, words: string): string[] {
  const [, list = ''] =
    new RegExp(String.raw`${words.replaceAll(' ', String.raw`\s+`)}\s+([\w\s,-]*?)(?: yet)?\.`).exec(text) ??
    [];
  return list.split(/,\s+|\s+(?:and|or)\s+/).filter((name) => name !== '');
}

function differences(what: string, named: readonly string[], expected: readonly string[]): string[] {
  return [
    ...expected.filter((name) => !named.includes(name)).map((name) => `${what}: ${name} is missing`),
    ...named
      .filter((name) => !expected.includes(name))
      .map((name) => `${what}: ${name} does not belong there`),
  ];
}

/** The rows of a section's table, without its heading. */
export function sectionOf(support: string, name: string): [name: string, ...string[]][] {
  const [, text = ''] = new RegExp(String.raw`^## ${name}$([^]*?)(?=^## |(?![^]))`, 'm').exec(support) ?? [];
  return rowsOf(text).slice(1) as [string, ...string[]][];
}

/** The version that a cell begins with. */
export function versionIn(cell: string): string | undefined {
  return new RegExp(`^${VERSION}`).exec(cell)?.[0];
}

/** A package of this repository, as far as its family shows. */
export interface FamilyMember {
  readonly name: string;
  readonly dependencies: readonly string[];
}

/** Where the table of families in CONTRIBUTING.md differs from the packages: each stands in one, and is made with what its family shares. */
export function wrongFamilies(contributing: string, packages: readonly FamilyMember[]): string[] {
  const [, table = ''] = /^<!-- families:.*-->\n([^]*?)(?=\n\n)/m.exec(contributing) ?? [];
  const named = rowsOf(table)
    .slice(1)
    .flatMap(([family = '', names = '']) => names.split(', ').map((name) => ({ family, name })));
  const unknown = named.filter(({ name }) => packages.every((one) => one.name !== name));
  return [
    ...unknown.map(({ name }) => `${name} is no package`),
    ...packages.flatMap(({ name, dependencies }) => {
      const own = named.filter((one) => one.name === name);
      const [{ family } = { family: '' }] = own;
      if (own.length !== 1) return [`${name} stands in ${own.length} families`];
      const isMadeWith = (protocol: string): boolean =>
        name === protocol || dependencies.includes(`@locks/${protocol}`);
      // Stores of other families use the kernel of records for the results of `once` alone.
      const isRight =
        (!family.includes('record') || isMadeWith('record-protocol')) &&
        (family.includes('server') || !isMadeWith('redis-protocol'));
      return isRight
        ? []
        : [`${name} is in "${family}", and depends on ${dependencies.join(', ') || 'nothing'}`];
    }),
  ];
}
