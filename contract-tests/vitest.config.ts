import { basename } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';
import { writeConformanceTests } from './src/conformance-tests.ts';

/**
 * Files of the suite that take longest, the longest first: none shall be left for the end. Those of one store stand apart, etcd
 * most of all: the starts of its servers and clients keep both cores busy.
 */
const LONG: readonly string[] = [
  'etcd-cluster',
  'upstash',
  'redis-ioredis-cluster',
  'zookeeper-ensemble',
  'redis-node-cluster',
  'redis-glide-cluster',
  'redis-ioredis-sentinel',
  'redis-node-sentinel',
  'redisson-cluster',
  'redisson-node-sentinel',
  'etcd',
  'zookeeper-native',
  'quorum-redis',
  'guide',
  'postgres-lease-pgbouncer',
  'mysql',
  'quorum-redis-ioredis',
  'redis-ioredis',
  'zookeeper',
  'redis-node',
  'redis-glide',
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
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 60_000,
    maxConcurrency: 8,
    sequence: { sequencer: LongestFirst },
  },
});
