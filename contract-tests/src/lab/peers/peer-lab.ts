import type { Address } from '@locks/core/conformance/proxy';
import RedisLab from '../../../redis-faults/lab.ts';
import { openers } from './openers.ts';
import type { PeerName } from './peer-names.ts';

export interface PeerOptions {
  readonly peer: PeerName;
  readonly ttlMs: number;
}

/** Opens locks of another library for a worker, as a `FaultLab` opens those of this repository. */
export default class PeerLab {
  readonly #redis = new RedisLab();

  server(options?: object): ReturnType<RedisLab['server']> {
    return this.#redis.server(options);
  }

  async locks(at: Address, { peer, ttlMs }: PeerOptions) {
    const { open } = await openers[peer]();
    const acquire = open(at, ttlMs);
    return {
      lock: (name: string) => ({
        acquire: ({ waitMs }: { readonly waitMs: number }) => acquire(name, waitMs),
      }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#redis[Symbol.asyncDispose]();
  }
}
