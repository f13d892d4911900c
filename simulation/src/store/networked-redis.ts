import type { LockBackend } from '@locks/core';
import type { RedisPort } from '@locks/redis-protocol';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { LuaScripts } from '../redis/lua-scripts.ts';
import { SimulatedRedis } from '../redis/simulated-redis.ts';
import { SimulatedRedisPort } from '../redis/simulated-redis-port.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** A simulated Redis server, which runs the real scripts, and the network to it. It keeps its data. */
export class NetworkedRedis implements SimulatedStore {
  readonly name = 'redis';
  readonly #world: World;
  readonly #redis: SimulatedRedis;
  #awayUntil = 0;

  constructor(world: World, drift: number, lua: LuaScripts) {
    this.#world = world;
    const micros = (): number => Math.floor((1_790_000_000_000 + world.now * (1 + drift)) * 1_000);
    this.#redis = new SimulatedRedis({ lua, micros });
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  backendIn(_process: SimulatedProcess, link: Link, { createRedisBackend }: LoadedLocks): LockBackend {
    const port = new SimulatedRedisPort({
      server: () => this.#redis,
      request: async (command, execute) => {
        const what = (): string =>
          command[0] === 'EVALSHA' ? `script ${command[1]?.slice(0, 6)}` : command[0];
        // A client library knows no deadline: a connection that gives no answer is found broken at some time.
        const answer = link.request(what, Infinity, execute);
        try {
          return (await answer).value;
        } finally {
          port.reconnects = link.reconnects;
        }
      },
      message: (deliver) => link.push(() => 'a message', deliver),
    });
    return createRedisBackend(port satisfies RedisPort);
  }

  /** What Redis keeps beside locks, as the highest token, has an end of its own: it is no leftover. */
  leftovers(): string[] {
    return [];
  }

  isEmpty(): boolean {
    return true;
  }
}
