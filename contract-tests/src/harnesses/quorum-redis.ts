import { quorumHarness } from './redis/quorum-harness.ts';

/** Nodes of both client libraries. */
export default quorumHarness(import.meta.url, 'quorum-redis', [
  'redis-ioredis',
  'redis-node',
  'redis-ioredis',
]);
