import { quorumHarness } from './redis/quorum-harness.ts';

/** Nodes of one client library. */
export default quorumHarness(import.meta.url, 'quorum-redis-ioredis', [
  'redis-ioredis',
  'redis-ioredis',
  'redis-ioredis',
]);
