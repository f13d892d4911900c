import type { LockBackend } from '@locks/core/backend';
import type { RedisBackendOptions, RedisCapabilities } from '@locks/redis-ioredis';

/** A client as a user would make it, with a function that ends it. */
export interface OpenedClient {
  backend(options?: RedisBackendOptions): LockBackend<RedisCapabilities>;
  fencedSet(key: string, value: string, token: bigint): Promise<void>;
  /** The same write without the fence. */
  set(key: string, value: string): Promise<unknown>;
  end(): void | Promise<void>;
}
