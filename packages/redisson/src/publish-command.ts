import type { RedisPort } from '@locks/redis-protocol';
import { isRetryableRedisError } from '@locks/redis-protocol/kit';
import type { CheckedRedissonOptions } from './options.ts';

/**
 * Whether Redisson publishes to sharded channels here. It does so only in a cluster, and by default where the server has
 * `PUBSUB SHARDNUMSUB`. Both sides must choose alike: a message to the other kind of channel wakes nobody.
 */
export class Sharding {
  readonly #port: RedisPort;
  #isSharded: boolean | undefined;

  constructor(port: RedisPort, { shardedSubscriptionMode }: CheckedRedissonOptions) {
    this.#port = port;
    if (!port.cluster) this.#isSharded = false;
    else if (shardedSubscriptionMode !== 'auto') this.#isSharded = shardedSubscriptionMode === 'on';
  }

  /** The answer, once {@link decide} has resolved. */
  get isSharded(): boolean {
    return this.#isSharded === true;
  }

  get command(): 'PUBLISH' | 'SPUBLISH' {
    return this.isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  /** Asks the server, the first time. `undefined`: nothing is left to decide. */
  decide(): Promise<void> | undefined {
    return this.#isSharded === undefined ? this.#ask() : undefined;
  }

  async #ask(): Promise<void> {
    // A client of a cluster knows no master before it has connected.
    if ((await this.#port.masters()).length === 0) await this.#port.send('', ['PING']);
    try {
      const [master] = await this.#port.masters();
      await master?.(['PUBSUB', 'SHARDNUMSUB']);
      this.#isSharded = true;
    } catch (error) {
      // Without an answer nothing is known.
      if (isRetryableRedisError(error)) throw error;
      this.#isSharded = false;
    }
  }
}
