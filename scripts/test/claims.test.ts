import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type BenchmarkResults,
  missingBackends,
  missingStores,
  triedRuntimes,
  triedStores,
  wrongFamilies,
  wrongDemoBackends,
  wrongFigures,
  wrongLabRuns,
  wrongVersions,
} from '../checks/claims.ts';
import { benchmarkTables } from '../checks/documents/benchmark-figures.ts';
import { backendNames } from '../../examples/src/demo/backends.ts';
import { root } from '../launcher/root.mjs';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');
const support = read('docs/support.md');
const stores = triedStores(support);
const runtimes = triedRuntimes(support);
const lab = globSync('contract-tests/lab-results/*.json', { cwd: root }).map((file) => basename(file));
const results = JSON.parse(read('benchmarks/results/redis.json')) as BenchmarkResults;
const tables = benchmarkTables('redis');

/** The README with one error; it fails where the README no longer has the text. */
function planted(from: string, to: string): string {
  expect(readme).toContain(from);
  return readme.replace(from, to);
}

describe('docs/support.md', () => {
  it('has the stores with what was tried, and those on stand-ins without', () => {
    expect(stores).toEqual(
      expect.arrayContaining([
        { name: 'Redis', oldest: '6.2', newest: '8.6', started: '7.0' },
        { name: 'NATS', oldest: '2.15', newest: '2.15', started: '2.15' },
        { name: 'S3', oldest: undefined, newest: undefined, started: 'moto 5.2, SeaweedFS 4.48' },
        { name: 'Upstash', oldest: undefined, newest: undefined, started: 'a bridge before Redis' },
      ]),
    );
    expect(stores.map(({ name }) => name)).not.toContain('PgBouncer');
  });
});

describe('the README', () => {
  it('may not leave a store out', () => {
    expect(missingStores('Redis, Valkey, PostgreSQL and MariaDB', stores)).toEqual(
      expect.arrayContaining(['MySQL', 'SQLite', 'NATS', 'Kubernetes']),
    );
    expect(missingStores(readme, stores)).toEqual([]);
  });

  it.each([
    ['Node 20.19 to 26', 'Node 18 to 26', 'Node 18, and docs/support.md: 20.19 to 26'],
    ['Deno 2.9', 'Deno 2.10', 'Deno 2.10, and docs/support.md: 2.9 to 2.9'],
    ['Bun 1.4, ', '', 'Bun is missing, and docs/support.md: 1.4 to 1.4'],
  ])('may not say it was tested on others: %j for %j', (from, to, problem) => {
    expect(wrongVersions(planted(from, to), runtimes)).toEqual([problem]);
  });

  it.each([
    ['no runs of Kubernetes yet', 'no runs of etcd and Kubernetes yet', 'etcd does not belong there'],
    ['no runs of Kubernetes yet', 'no runs of NATS and Kubernetes yet', 'NATS does not belong there'],
  ])('may not hide a run of the lab: %j for %j', (from, to, problem) => {
    expect(wrongLabRuns(planted(from, to), stores, lab)).toEqual([`runs in the lab: ${problem}`]);
  });

  it('may not promise a run of the lab', () => {
    const others = lab.filter((name) => !name.startsWith('mongodb'));
    expect(wrongLabRuns(readme, stores, others)).toEqual(['runs in the lab: MongoDB is missing']);
  });

  it.each([
    ['mysql, zookeeper or etcd.', 'mysql or etcd.', 'zookeeper is missing'],
    ['zookeeper or etcd.', 'zookeeper, nats or etcd.', 'nats does not belong there'],
  ])('may not promise another demo: %j for %j', (from, to, problem) => {
    expect(wrongDemoBackends(planted(from, to), backendNames)).toEqual([`backends of the demo: ${problem}`]);
  });

  it('has to say less when the lab has run on a store', () => {
    expect(wrongLabRuns(readme, stores, [...lab, 'kubernetes-20261201'])).toEqual([
      'runs in the lab: Kubernetes does not belong there',
    ]);
  });

  it.each([
    ['**809**', '**909**', /hand-offs per second, one process, @locks\/redis-ioredis: \*\*909\*\*/],
    ['| 10 | 4 |', '| 10 | 40 |', /hand-offs per second, one process, @verrou\/core: 40/],
    ['**4.4**', '**5**', /idle after .*@locks\/redis-ioredis: \*\*5\*\*, and the benchmark: 4\.35/],
    ['**43, 64**', '**43, 54**', /wait in 4 processes.*@locks\/redis-ioredis/],
    ['| 17.0 |', '| 13.0 |', /requests per acquisition.*redis-semaphore: 13\.0, and the benchmark: 16\.97/],
    ['8 137 with verrou', '6 137 with verrou', /^without contention: /],
    ['2026-11-28, medians', '2026-11-27, medians', /^no "2026-11-28"/],
    ['medians of three', 'medians of five', /^no "medians of three rounds"/],
    [
      '| requests per acq',
      '| queries per acq',
      /^"queries per acquisition and release" is no row that is compared$/,
    ],
  ])('may not have another figure than the benchmark: %j for %j', (from, to, problem) => {
    expect(wrongFigures(readme, results, tables)).toEqual([]);
    expect(wrongFigures(planted(from, to), results, tables)).toEqual([expect.stringMatching(problem)]);
  });
});

describe('a page that compares backends', () => {
  it('names each of them, in any case', () => {
    const all = 'redis postgresql mysql sqlite etcd zookeeper dynamodb s3 nats mongodb kubernetes';
    expect(missingBackends(all, stores)).toEqual([]);
    expect(missingBackends(all.replace(' nats', ''), stores)).toEqual(['NATS']);
  });
});

describe('the families of packages', () => {
  const member = (name: string, ...dependencies: string[]) => ({ name, dependencies });
  const table = (record: string, server = 'redis-node') =>
    [
      '<!-- families: -->',
      '| who decides | packages |',
      '|---|---|',
      `| a record | ${record} |`,
      `| a server | ${server} |`,
      '',
      '',
    ].join('\n');
  const nats = member('nats', '@locks/record-protocol');
  const node = member('redis-node', '@locks/redis-protocol');

  it('have each package once, with what it is made with', () => {
    expect(wrongFamilies(table('nats'), [nats, node])).toEqual([]);
    expect(wrongFamilies(table('nats, mysql'), [nats, node])).toEqual(['mysql is no package']);
    expect(wrongFamilies(table('nats'), [nats, node, member('etcd')])).toEqual(['etcd stands in 0 families']);
    expect(wrongFamilies(table('nats, redis-node', 'nats'), [nats, node])).toHaveLength(2);
    expect(wrongFamilies(table('nats, etcd'), [nats, node, member('etcd')])).toHaveLength(1);
    expect(wrongFamilies(table('nats, redis-node', 'etcd'), [nats, node, member('etcd')])).toHaveLength(1);
  });
});
