import { basename } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { configDefaults, defineConfig } from 'vitest/config';
import { writeConformanceTests } from './src/conformance-tests.ts';

/**
 * The order of the files that take longest: none shall be left for the end. A slow server, which keeps a processor busy for minutes, has
 * the many quick files of others beside it, not a second slow one; those of one store stand apart.
 */
const LONG: readonly string[] = [
  's3',
  'redis-node-cluster',
  'zookeeper-ensemble',
  'redis-ioredis-sentinel',
  'redis-glide-cluster',
  'postgres-lease-pgbouncer',
  'dynamodb',
  'redis-ioredis-cluster',
  'zookeeper-native',
  'redisson-node-sentinel',
  's3-seaweedfs',
  'redis-node-sentinel',
  'postgres-js-lease',
  'redisson-cluster',
  'quorum-redis',
  'mongodb',
  'redis-glide',
  'cohort-postgres-lease',
  'cohort-redis-ioredis',
  'etcd-cluster',
  'redisson-node',
  'upstash',
  'pglite',
  'nats-cluster',
  'record-http',
  'etcd',
  'nats',
  'once',
  'guide',
  'mysql',
  'quorum-redis-ioredis',
  'redis-ioredis',
  'zookeeper',
  'redis-node',
  'postgres-lease',
  'memory-timing',
  'sqlite',
];

writeConformanceTests();

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = LONG.indexOf(basename(moduleId, '.test.ts'));
      return rank === -1 ? LONG.length : rank;
    };
    return (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b));
  }
}

// Conformance is judged by time too: few cases at once, and no more files than the cores of a small machine.
export default defineConfig({
  test: {
    // They use node:test, and test/guide.test.ts runs them.
    exclude: [...configDefaults.exclude, 'guide/**'],
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 60_000,
    maxConcurrency: 8,
    sequence: { sequencer: LongestFirst },
  },
});
