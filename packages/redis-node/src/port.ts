import type { RedisPort } from '@locks/redis-protocol';
import { NodeRedisChannelPort } from './channel-port.ts';
import { checkClient } from './check-client.ts';
import type { NodeRedisClient } from './clients.ts';

export type { NodeRedisClient } from './clients.ts';

/**
 * The port of a client of `redis`, for protocols other than that of this package: `@locks/redisson` speaks one.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for what is not a usable client of `redis`
 */
export function nodeRedisPort(client: NodeRedisClient): RedisPort {
  return new NodeRedisChannelPort(checkClient(client));
}
