import { readdirSync } from 'node:fs';

const FOLDER = new URL('./harnesses/', import.meta.url);

/** The names of all harnesses: of each backend and topology, and of the fixtures that test the suite. */
export const harnessNames: readonly string[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length))
  .sort();

/** Harnesses of what nobody can install: they test the suite, or one kind of lock in place of another. */
export const fixtureNames: readonly string[] = [
  'cohort-memory',
  'cohort-postgres-lease',
  'cohort-redis-ioredis',
  'memory-all-of-one',
  'memory-coarse',
  'memory-semaphore',
  'memory-slow',
  'memory-tcp',
  'memory-write-lock',
  'quorum-memory',
  'record-http',
  'session-memory',
  'session-sqlite',
];

/**
 * Harnesses that `npm test` leaves to `npm run test:all`: other topologies and clients of a store that has a plainer one, and stores
 * of records whose servers come from Java, Python or Go, since `nats` and `record-http` run the same kernel.
 */
export const topologyNames: readonly string[] = [
  'dynamodb',
  'etcd-cluster',
  'file-poll',
  'kubernetes',
  'mongodb',
  'nats-cluster',
  'pglite',
  'postgres-js-advisory',
  'postgres-js-lease',
  'postgres-lease-pgbouncer',
  'quorum-redis',
  'redis-glide',
  'redis-glide-cluster',
  'redis-ioredis-cluster',
  'redis-ioredis-sentinel',
  'redis-node-cluster',
  'redis-node-sentinel',
  'redisson',
  'redisson-cluster',
  'redisson-fenced',
  'redisson-node',
  'redisson-node-sentinel',
  's3',
  's3-seaweedfs',
  'upstash',
  'zookeeper-ensemble',
  'zookeeper-native',
];

/** Harnesses whose servers have to be built first: the matrix has the results that were kept (`server-results/`). */
export const builtNames: readonly string[] = ['kubernetes'];

export function harnessUrl(name: string): URL {
  return new URL(`${name}.ts`, FOLDER);
}
