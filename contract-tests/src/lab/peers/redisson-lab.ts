import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import type { RedissonBackendOptions } from '@locks/redisson';
import { redissonBackend } from '@locks/redisson/ioredis';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { FaultLab } from '../../fault-lab/fault-lab.ts';

export interface RedissonLabOptions extends LockOptions {
  readonly backend?: RedissonBackendOptions;
  /** Locks of `getFencedLock`, as for workers in Java. */
  readonly isFenced?: boolean;
}

/** Node's side of tests with Redisson. */
export default class RedissonLab extends FaultLab<RedissonLabOptions> {
  readonly module = import.meta.url;
  protected override readonly protocol = 'redis';

  async server(): Promise<RedisServer> {
    return this.use(await startRedis());
  }

  locks(
    at: Address | readonly Address[],
    { backend, isFenced = false, ...options }: RedissonLabOptions = {},
  ): LockManager {
    const client = 'host' in at ? new Redis({ host: at.host, port: at.port }) : new Cluster([...at]);
    client.on('error', () => undefined);
    this.defer(() => client.disconnect());
    return this.use(
      createLocks(redissonBackend(client, { fencing: isFenced, ...backend }), { waitMs: 20_000, ...options }),
    );
  }
}
