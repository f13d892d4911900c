import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { Address } from '@locks/core/conformance/proxy';
import type { RedisBackendOptions } from '@locks/redis-ioredis';
import { type RedisOptions, type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { type Library, openClient } from '../src/harnesses/redis/open-client.ts';
import type { OpenedClient } from '../src/harnesses/redis/opened-client.ts';

export interface LabOptions extends LockOptions {
  readonly backend?: RedisBackendOptions;
  /** @defaultValue the library of the lab */
  readonly library?: Library;
}

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;
  protected override readonly protocol = 'redis';
  readonly #library: Library;
  #client: OpenedClient | undefined;

  constructor(library: Library = 'redis-ioredis') {
    super();
    this.#library = library;
  }

  async server(options?: RedisOptions): Promise<RedisServer> {
    return this.use(await startRedis(options));
  }

  override async backend(
    at: Address | RedisAddress | { readonly url: string },
    { backend, library = this.#library }: Pick<LabOptions, 'backend' | 'library'> = {},
  ): Promise<LockBackend> {
    const client = await openClient(library, addressOf(at));
    this.#client = client;
    this.defer(() => client.end());
    return client.backend(backend);
  }

  async locks(
    at: Address | RedisAddress | { readonly url: string },
    { backend, library, ...options }: LabOptions = {},
  ): Promise<LockManager> {
    const made = await this.backend(at, { backend, library });
    // Many tests start at once on a busy machine: a wait that must succeed has time.
    return this.use(createLocks(made, { waitMs: 20_000, ...options }));
  }

  /** For workers: writes a key over the client that was opened last, under a token or without one. */
  async write(key: string, value: string, token: bigint | undefined): Promise<void> {
    if (token === undefined) await this.#client?.set(key, value);
    else await this.#client?.fencedSet(key, value, token);
  }

  protected override workerOptions(options: LabOptions): LabOptions {
    return { library: this.#library, ...options };
  }
}

function addressOf(at: Address | RedisAddress | { readonly url: string }): RedisAddress {
  if ('kind' in at) return at;
  return { kind: 'standalone', url: 'url' in at ? at.url : `redis://${at.host}:${at.port}` };
}

/**
 * Resolves when `count` acquisitions wait for `name` and are woken by a message: the queue marks that only once they listen, and
 * a first wait begins before that.
 */
export async function untilListening(redis: RedisServer, name: string, count = 1): Promise<void> {
  const listening = async () => {
    const members = (await redis.command('ZRANGE', `{lock::${name}}:q`, 0, -1)) as string[];
    return members.filter((member) => /^[^@|]+\|[\d:]+\|=/.test(member)).length === count;
  };
  await waitUntil(listening, { what: `${count} waiters of ${name} that listen` });
}
