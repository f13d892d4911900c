import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ServerVersions } from '../../../packages/core/src/doctor/index.ts';
import { root } from '../../launcher/root.mjs';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { type Supported, supportedVersions, wrongMentions } from '../supported-versions.ts';

const SUPPORT = 'docs/support.md';
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'packages/*/README.md'];
/** Pages of what once was, of other makers' products, and written by programs. */
const OTHERS = [
  SUPPORT,
  'docs/{compatibility,hosted-stores,track-record}.md',
  'docs/{adr,generated,reports}/**',
];

/** The names that `locks doctor` and the kept results give to servers. */
const SERVERS: Readonly<Record<string, string>> = {
  redis: 'Redis',
  valkey: 'Valkey',
  postgres: 'PostgreSQL',
  mariadb: 'MariaDB',
  mysql: 'MySQL',
  etcd: 'etcd',
  zookeeper: 'ZooKeeper',
  kubernetes: 'Kubernetes',
  nats: 'NATS',
  mongodb: 'MongoDB',
};
/** The peers that docs/support.md calls otherwise. */
const PEERS: Readonly<Record<string, string>> = {
  vitest: 'Vitest',
  '@nestjs/common': 'NestJS',
  '@nestjs/core': 'NestJS',
  postgres: 'postgres.js',
  '@electric-sql/pglite': 'PGlite',
  '@nats-io/transport-node': '@nats-io/nats-core',
};

interface VersionsModule {
  readonly SERVER_VERSIONS: Readonly<Record<string, ServerVersions>>;
}

type Check = { readonly name: string; readonly problem: string | undefined };

/** Versions stand in one place. */
export const versionsStep: Step = {
  name: 'versions',
  about: 'the documents, the packages and `locks doctor` name the versions that docs/support.md has',
  kind: 'static',
  async run() {
    const supported = supportedVersions(readFileSync(join(root, SUPPORT), 'utf8'));
    return resultOf([
      ...mentions(supported),
      ...ofPackages(supported),
      ...(await ofDoctor(supported)),
      ...ofResults(supported),
    ]);
  },
};

function mentions(supported: ReadonlyMap<string, Supported>): Check[] {
  return globSync(DOCUMENTS, { cwd: root, exclude: ['**/node_modules/**', ...OTHERS] }).map((file) => {
    const wrong = wrongMentions(readFileSync(join(root, file), 'utf8'), supported);
    const lines = wrong.map(({ line, text, problem }) => `line ${line}: "${text}": ${problem}`);
    return { name: file, problem: lines.length > 0 ? lines.join('\n') : undefined };
  });
}

/** `engines.node` and the lower bounds of the peers. */
function ofPackages(supported: ReadonlyMap<string, Supported>): Check[] {
  return globSync('packages/*/package.json', { cwd: root }).flatMap((file) => {
    const { engines, peerDependencies } = JSON.parse(readFileSync(join(root, file), 'utf8')) as {
      readonly engines?: { readonly node?: string };
      readonly peerDependencies?: Readonly<Record<string, string>>;
    };
    const ownNode = ofFeature(basename(dirname(file)));
    const ranges = [
      ['Node', engines?.node ?? 'absent'] as const,
      ...Object.entries(peerDependencies ?? {})
        .filter(([, range]) => !range.startsWith('workspace:'))
        .map(([name, range]) => [PEERS[name] ?? name, range] as const),
    ];
    return ranges.map(([name, range]) => {
      if (name === 'Node' && ownNode !== undefined) {
        const problem = range === `>=${ownNode}` ? undefined : `${range}, and ${SUPPORT}: ${ownNode}`;
        return { name: `${file}: ${name}`, problem };
      }
      const least = range.match(/\d+(\.\d+)*/g)?.map(short) ?? [];
      const { needs = '', versions = new Set<string>() } = supported.get(name) ?? {};
      const known = [...versions].map(short);
      const isRight = least[0] === short(needs) && least.every((version) => known.includes(version));
      return {
        name: `${file}: ${name}`,
        problem: isRight ? undefined : `${range}, and ${SUPPORT}: ${needs}`,
      };
    });
  });
}

/** The version of Node in the row of a package that needs a newer one than the others. */
function ofFeature(shortName: string): string | undefined {
  const row = new RegExp(`^\\| \`@locks/${shortName}\`[^|]*\\| Node ([\\d.]+) \\|`, 'm');
  return row.exec(readFileSync(join(root, SUPPORT), 'utf8'))?.[1];
}

async function ofDoctor(supported: ReadonlyMap<string, Supported>): Promise<Check[]> {
  const files = globSync('packages/*/src/server-versions.ts', { cwd: root });
  const ofPackages = await Promise.all(
    files.map((file) => import(pathToFileURL(join(root, file)).href) as Promise<VersionsModule>),
  );
  return ofPackages.flatMap(({ SERVER_VERSIONS }) =>
    Object.entries(SERVER_VERSIONS).map(([product, { oldest, tested }]) => {
      const { needs, oldestTried } = supported.get(SERVERS[product] ?? product) ?? {};
      const isRight = needs === oldest && oldestTried === tested;
      const says = `needs ${oldest}, tried from ${tested} on, and ${SUPPORT}: ${needs}, ${oldestTried}`;
      return { name: `locks doctor: ${product}`, problem: isRight ? undefined : says };
    }),
  );
}

/** Every kept result is of a version that has a place in the table. */
function ofResults(supported: ReadonlyMap<string, Supported>): Check[] {
  const kept = globSync('contract-tests/server-results/*/*.json', { cwd: root }).map((file) =>
    basename(dirname(file)),
  );
  return [...new Set(kept)].map((name) => {
    const [product = '', version = ''] = name.split('-');
    const isThere = supported.get(SERVERS[product] ?? product)?.versions.has(version) === true;
    return { name: `a result on ${name}`, problem: isThere ? undefined : `${SUPPORT} does not have it` };
  });
}

/** `6.0.0` and `6` are one version. */
function short(version: string): string {
  return version.replace(/(\.0)+$/, '');
}
