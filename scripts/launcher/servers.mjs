import { join } from 'node:path';
import { serverKinds } from '../../test-servers/src/find-server.mjs';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { StepFailed } from './step-failed.mjs';

/** The variable by which the user offers a server of his own, for each kind of server. */
export const urlVariables = /** @type {const} */ ({
  redis: 'REDIS_URL',
  postgres: 'POSTGRES_URL',
  mysql: 'MYSQL_URL',
  zookeeper: 'ZOOKEEPER_URL',
  etcd: 'ETCD_URL',
  dynamodb: 'DYNAMODB_URL',
  s3: 'S3_URL',
  seaweedfs: 'SEAWEEDFS_URL',
  nats: 'NATS_URL',
  mongodb: 'MONGODB_URL',
});

/** @typedef {keyof typeof urlVariables} ServerName */

/**
 * Whether Java or Python are needed to bring a server. A machine that has neither goes without: what needs such a server is
 * reported as not run.
 * @param {string} server
 */
export function isOptional(server) {
  const { maven, pypi } = serverKinds[server] ?? {};
  return maven !== undefined || pypi !== undefined;
}

/** Those that the package manager of the system brings. */
const systemServers = /** @type {ServerName[]} */ (Object.keys(urlVariables)).filter(
  (server) => !isOptional(server),
);

/** Packages and benchmarks that are not named after a server. */
const suites = /** @type {Record<string, ServerName[]>} */ ({
  all: systemServers,
  cli: systemServers,
  kinds: ['redis'],
  nestjs: ['redis'],
  'redlock-compat': ['redis'],
  redisson: ['redis'],
  // The simulated servers are compared with real ones.
  simulation: ['etcd', 'redis', 'zookeeper'],
  'test-servers': systemServers,
  upstash: ['redis'],
});

/**
 * The servers that a backend, a package or a benchmark of this name needs; none for the embedded ones.
 * @param {string | undefined} name
 * @returns {ServerName[]}
 */
export function serversOf(name = '') {
  const servers = /** @type {ServerName[]} */ (Object.keys(urlVariables));
  const parts = name.split('-');
  return suites[name] ?? servers.filter((server) => parts.includes(server));
}

/**
 * Sees to it that the programs of these servers are installed, or that the user has named servers of his own.
 * @param {readonly ServerName[]} names
 * @param {string} node
 * @param {NodeJS.ProcessEnv} env
 */
export async function requireServers(names, node, env) {
  for (const name of names) {
    if (env[urlVariables[name]]) continue;
    const installer = join(root, 'test-servers/install.mjs');
    const { exitCode } = await runChild(node, [installer, name], { env, output: 'to-stderr' });
    if (exitCode === 0) continue;
    throw new StepFailed(
      `No ${name} server can be started here. Install it as said above, or set ${urlVariables[name]} to the URL of a running one.`,
    );
  }
}
