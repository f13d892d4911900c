import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { sectionOf, triedStores, versionIn } from '../claims.ts';
import { rowsOf } from '../supported-versions.ts';
import { linkedFrom } from './shared-sentences.ts';
import { type Store, STORES } from './stores.ts';

/** Pages that compare stores. Each has the columns that answer its question: `<!-- stores: tokens, failover -->`. */
export const COMPARISONS = [
  'README.md',
  'docs/choosing-a-backend.md',
  'docs/guides/fencing.md',
  'docs/guides/production.md',
  'docs/hosted-stores.md',
  'docs/limits.md',
  'docs/web-locks.md',
];

const TABLE = /(<!-- stores: ([^>]+) -->\n)[^]*?(<!-- end -->)/g;

/** The pages from which most of the columns come. */
interface Facts {
  /** docs/compatibility.md: what each backend declares. */
  readonly matrix: string;
  /** docs/support.md: what was tried. */
  readonly support: string;
}

const COLUMNS: Readonly<Record<string, (store: Store, facts: Facts) => string>> = {
  tenure: (store, facts) => declared(store, facts, 'tenure').join(', '),
  order: (store, facts) => declared(store, facts, 'order').join(', '),
  tokens: (store, facts) => {
    const kinds = declared(store, facts, 'fencing').filter((kind) => kind !== 'none');
    if (store.tokenOption === undefined) return kinds[0] ?? 'none';
    return `none; ${kinds.join(', ')} with \`${store.tokenOption}\``;
  },
  modes: (store, facts) => {
    const modes = declared(store, facts, 'modes').toSorted((a, b) => a.length - b.length)[0] ?? '';
    return modes === 'exclusive, shared, permit' ? 'all' : modes;
  },
  'wake-up': ({ push }) => push,
  'free after a crash': ({ crash }) =>
    typeof crash === 'string' ? crash : `ttl + ${marginSeconds(crash.clockOf)} s`,
  'a failover': ({ failover }) => failover,
  set: ({ set }) => set,
  'requests per lock': ({ requests }) => requests,
  needs: ({ needs }) => needs,
  'tested on': testedOn,
  '`steal`': (store, facts) =>
    declared(store, facts, 'features').every((features) => features.split(', ').includes('steal'))
      ? 'one step'
      : 'after those who wait',
  '`query()` shows names': (store, facts) =>
    declared(store, facts, 'features').every((features) => features.split(', ').includes('list'))
      ? (store.listed ?? 'in any order')
      : 'never: `NotSupportedError`',
};

/** The document with its tables of stores as they are now. Stores with equal cells share a row. */
export function withStoreTables(document: string, file: string, facts: Facts, stores = STORES): string {
  if (COMPARISONS.includes(file) && document.search(TABLE) < 0)
    throw new Error(`${file} compares stores, and has no table of them: <!-- stores: COLUMN, COLUMN -->`);
  return document.replace(TABLE, (_, start: string, list: string, end: string) => {
    const columns = list.split(', ');
    const rows = new Map<string, string[]>();
    for (const store of stores) {
      const cells = columns.map((column) => cellOf(column, file)(store, facts)).join(' | ');
      rows.set(cells, [...(rows.get(cells) ?? []), `[${store.name}](${store.page})`]);
    }
    const lines = [...rows].map(([cells, names]) => `| ${names.join(' · ')} | ${cells} |`);
    const heading = [`| store | ${columns.join(' | ')} |`, `|---|${'---|'.repeat(columns.length)}`];
    return `${start}${linkedFrom(file, [...heading, ...lines].join('\n'))}\n${end}`;
  });
}

/** Backends of the matrix and stores of docs/support.md that no row has. */
export function storesWithoutRow({ matrix, support }: Facts, stores = STORES): string[] {
  const backends = declarations(matrix).map(([backend = '']) => backend);
  const products = triedStores(support).map(({ name }) => name);
  return [
    ...backends.filter((backend) => !stores.some((store) => store.backends.test(backend))),
    ...products.filter((product) => !stores.some(({ tested }) => tested.includes(product))),
  ];
}

function cellOf(column: string, file: string): (store: Store, facts: Facts) => string {
  const cell = COLUMNS[column];
  if (cell === undefined) throw new Error(`${file}: no column of stores is "${column}"`);
  return cell;
}

/** The different cells that the backends of a store have in a column of docs/compatibility.md. */
function declared({ name, backends }: Store, { matrix }: Facts, column: string): string[] {
  const [heading = [], ...rows] = declarations(matrix, true);
  const at = heading.indexOf(column);
  const cells = rows.filter(([backend = '']) => backends.test(backend)).map((row) => row[at] ?? '');
  if (at < 0 || cells.length === 0) throw new Error(`docs/compatibility.md has no ${column} of ${name}`);
  return [...new Set(cells)];
}

function declarations(matrix: string, withHeading = false): string[][] {
  const [, text = ''] = /^## What each backend declares$([^]*?)(?=^## |(?![^]))/m.exec(matrix) ?? [];
  return rowsOf(text).slice(withHeading ? 0 : 1);
}

function testedOn({ tested, isTestedOnStarted }: Store, { support }: Facts): string {
  if (tested.length === 0) return 'no server';
  const servers = triedStores(support);
  return tested
    .map((product) => {
      const server = servers.find(({ name }) => name === product);
      if (server === undefined) return `${product} ${clientVersion(product, support)}`;
      const { oldest, newest, started = '' } = server;
      if (newest === undefined) return `${started.replace(/ in its place$/, '')}, a stand-in`;
      if (isTestedOnStarted) return `${product} ${versionIn(started)}`;
      const versions = oldest === newest ? newest : `${oldest} to ${newest}`;
      return `${product} ${versions}${started.endsWith('where it was built') ? ', by hand' : ''}`;
    })
    .join(', ');
}

function clientVersion(product: string, support: string): string {
  const [, , tried] = sectionOf(support, 'Clients').find(([name]) => name.startsWith(product)) ?? [];
  if (tried === undefined) throw new Error(`docs/support.md has no ${product}`);
  return tried;
}

/** How long after the ttl a hold may last by the default options, as `createRecordBackend` declares it: `capabilities.ttl.marginMs`. */
function marginSeconds(shortName: string): number {
  const source = globSync(`packages/${shortName}/src/*.ts`, { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');
  const [, skew] = /skewMs: skewOption\(([\d_]+)\)/.exec(source) ?? [];
  const [, step = ''] = /clockOf\(options, (\w+)\)/.exec(source) ?? [];
  const stepMs = numberOf(
    /^\d/.test(step) ? step : new RegExp(`const ${step} = ([\\d_]+);`).exec(source)?.[1],
  );
  const marginMs = 2 * (stepMs + numberOf(skew));
  if (!Number.isFinite(marginMs)) throw new Error(`packages/${shortName}: no step or skew of its clock`);
  return Math.round(marginMs / 1_000);
}

function numberOf(literal: string | undefined): number {
  return Number(literal?.replaceAll('_', ''));
}
