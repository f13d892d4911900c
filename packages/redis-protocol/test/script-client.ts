import type { RedisServer } from '@locks/test-servers';
import { type Script, scripts } from '../src/generated/scripts.ts';
import { keysOfLock } from '../src/keys.ts';

/** Runs the scripts as another language would, with no client of ours in between. */
export class ScriptClient {
  readonly #redis: RedisServer;

  constructor(redis: RedisServer) {
    this.#redis = redis;
  }

  run(script: Script, keys: readonly string[], args: readonly (string | number)[]) {
    return this.#redis.command('EVAL', script.source, keys.length, ...keys, ...args);
  }

  acquire(name: string, id: string, { ttlMs = 30_000, notify }: { ttlMs?: number; notify?: string } = {}) {
    const queue = notify === undefined ? [] : [`5000|2000|${notify}`];
    return this.run(scripts.acquire, this.keys(name), [id, ttlMs, 'label', ...queue]);
  }

  release(name: string, id: string, notify = '=me') {
    return this.run(scripts.release, this.keys(name), [id, notify]);
  }

  abandon(name: string, id: string, { notify = '=me', px = 2000 } = {}) {
    return this.run(scripts.abandon, this.keys(name), [id, notify, `${id}|${px}|${notify}|label`]);
  }

  check(
    name: string,
    notify: string,
    waiters: readonly (readonly [id: string, place: number])[],
    { aliveMs = 5000, former = '' } = {},
  ) {
    const members = waiters.flatMap(([id, place]) => [`${id}|2000|${notify}|label`, place]);
    const args = [`${aliveMs}|${former}|${notify}`, waiters.length, ...members];
    return this.run(scripts.check, this.keys(name), args);
  }

  renew(...leases: readonly (readonly [name: string, id: string, ttlMs: number])[]) {
    const locks = leases.map(([name]) => this.lock(name));
    return this.run(
      scripts.renew,
      locks,
      leases.flatMap(([, id, ttlMs]) => [id, ttlMs]),
    );
  }

  lock(name: string): string {
    return keysOfLock(`lock:${name}`).lock;
  }

  keys(name: string): [lock: string, token: string, queue: string] {
    const { lock, token, queue } = keysOfLock(`lock:${name}`);
    return [lock, token, queue];
  }
}
