import { createLocks, type LockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import {
  type RedisServer,
  startEtcd,
  startMariadb,
  startPostgres,
  startRedis,
  startZookeeper,
} from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { folder } from './program.ts';

/** A store of a test's own, as a user of the command names it. */
export interface StartedStore extends AsyncDisposable {
  readonly url: string;
}

export type StoreName = 'redis' | 'sqlite' | 'postgres' | 'mysql' | 'etcd' | 'zookeeper';

const START: Readonly<Record<StoreName, () => Promise<[url: string, stop?: () => Promise<unknown>]>>> = {
  async redis() {
    const server = await startRedis();
    return [server.url, () => server.stop()];
  },
  async sqlite() {
    return [`sqlite:${folder()}/locks.db`];
  },
  async postgres() {
    const server = await startPostgres();
    return [server.url, () => server.stop()];
  },
  async mysql() {
    const server = await startMariadb();
    return [server.urlOf('app'), () => server.stop()];
  },
  async etcd() {
    const server = await startEtcd();
    return [`etcd://${server.url.replace('http://', '')}`, () => server.stop()];
  },
  async zookeeper() {
    const server = await startZookeeper();
    return [`zookeeper://${server.address}`, () => server.stop()];
  },
};

export const STORE_NAMES = Object.keys(START) as StoreName[];

export async function startStore(name: StoreName): Promise<StartedStore> {
  const [url, stop] = await START[name]();
  return {
    url,
    async [Symbol.asyncDispose]() {
      await stop?.();
    },
  };
}

/** A Redis for all tests of the file or of the suite that calls this, with a client and a manager of the tests. */
export class TestRedis {
  #server: RedisServer | undefined;
  #client: Redis | undefined;
  #manager: LockManager | undefined;

  constructor() {
    beforeAll(async () => {
      this.#server = await startRedis();
      this.#client = new Redis(this.#server.url);
      this.#manager = createLocks(redisBackend(this.#client));
    });
    afterAll(async () => {
      await this.#manager?.close();
      this.#client?.disconnect();
      await this.#server?.stop();
    });
  }

  get url(): string {
    return started(this.#server).url;
  }

  get client(): Redis {
    return started(this.#client);
  }

  get locks(): LockManager {
    return started(this.#manager);
  }

  /** The names that somebody holds or waits for. */
  async used(): Promise<string[]> {
    const names: string[] = [];
    for await (const { resource } of this.locks.list()) names.push(resource);
    return names;
  }
}

function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Redis is started before the first test');
  return value;
}
