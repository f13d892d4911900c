import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { LuaScripts } from '../redis/lua-scripts.ts';
import { type DeletingCommand, SimulatedRedis } from '../redis/simulated-redis.ts';

/** What the random numbers are for that choose the versions of the servers. */
const VERSIONS = 1_001;
const CHOICES: readonly { readonly deletesBy?: DeletingCommand }[] = [
  {},
  { deletesBy: 'DELEX' },
  { deletesBy: 'DELIFEQ' },
];

/** A master that clients reach, and one replica, which gets each step of the master some time later. Their versions may differ. */
export class RedisServers {
  readonly #world: World;
  readonly #lua: LuaScripts;
  readonly #lagMs: number;
  readonly #versions: SeededRandom;
  readonly micros: () => number;
  master: SimulatedRedis;
  #replica: SimulatedRedis | undefined;

  /** @param lagMs - `undefined`: there is no replica */
  constructor(world: World, lua: LuaScripts, drift: number, lagMs: number | undefined) {
    this.#world = world;
    this.#lua = lua;
    this.#lagMs = lagMs ?? 0;
    this.#versions = world.random.fork(VERSIONS);
    this.micros = () => Math.floor((1_790_000_000_000 + world.now * (1 + drift)) * 1_000);
    this.master = this.#start();
    if (lagMs !== undefined) this.#replicate();
  }

  /** To be called after each command: what it wrote is on its way to the replica. */
  hasExecuted(): void {
    const replica = this.#replica;
    const due = replica === undefined ? 0 : replica.lag - this.#underWay;
    if (replica === undefined || due <= 0) return;
    this.#underWay += due;
    this.#world.schedule(this.#world.now + this.#lagMs, () => {
      if (this.#replica !== replica) return;
      replica.receive(due);
      this.#underWay -= due;
    });
  }

  /** The replica becomes the master. Returns whether it lacks anything. */
  failOver(): boolean {
    const replica = this.#replica;
    if (replica === undefined) return false;
    const isBehind = replica.lag > 0;
    replica.promote();
    this.master = replica;
    this.#replicate();
    return isBehind;
  }

  #underWay = 0;

  #replicate(): void {
    this.#replica = this.#start();
    this.#replica.replicateFrom(this.master);
    this.#underWay = 0;
  }

  /** The same master, as a connection sees it that has selected a database. */
  database(number: number): SimulatedRedis {
    if (number === 0) return this.master;
    if (this.#other?.of !== this.master) {
      const server = new SimulatedRedis({ lua: this.#lua, micros: this.micros, besides: this.master });
      this.#other = { of: this.master, server };
    }
    return this.#other.server;
  }

  #other: { readonly of: SimulatedRedis; readonly server: SimulatedRedis } | undefined;

  #start(): SimulatedRedis {
    const version = this.#versions.pick(CHOICES);
    return new SimulatedRedis({ lua: this.#lua, micros: this.micros, ...version });
  }
}
