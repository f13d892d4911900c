import type { RedisPort } from '@locks/redis-protocol';
import type { Cluster, Redis } from 'ioredis';
import { IoredisChannelPort } from './channel-port.ts';
import { checkClient, type IoredisClient } from './check-client.ts';

export type { IoredisClient } from './check-client.ts';

/**
 * The port of an ioredis client, for protocols other than that of this package: `@locks/redisson` speaks one.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for what is not a usable ioredis client
 */
export function ioredisPort(client: IoredisClient): RedisPort {
  checkClient(client);
  return new IoredisChannelPort(client as unknown as Redis | Cluster);
}
