import { openRedis } from '../suites/redis/redis-testbed.ts';
import type { Store } from './store.ts';

export const redisStore: Store = {
  id: 'redis',
  counting: '`MONITOR`: the commands that clients sent; not those inside scripts',
  start: openRedis,
};
