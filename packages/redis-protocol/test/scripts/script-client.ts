import type { RedisServer } from '@locks/test-servers';
import { type Script, scripts } from '../../src/generated/scripts.ts';
import { keysOfLock } from '../../src/keys.ts';
import { parseShare, type Share } from '../../src/value.ts';

/** Runs the scripts as a client in another language would. */
export class ScriptClient {
  readonly #redis: RedisServer;

  constructor(redis: RedisServer) {
    this.#redis = redis;
  }

  run(script: Script, keys: readonly string[], args: readonly (string | number)[]) {
    return this.#redis.command('EVAL', script.source, keys.length, ...keys, ...args);
  }

  acquire(
    name: string,
    id: string,
    { ttlMs = 30_000, replyAddress }: { ttlMs?: number; replyAddress?: string } = {},
  ) {
    const queue = replyAddress === undefined ? [] : [replyAddress, 5000];
    return this.run(scripts.acquire, this.keys(name), [id, ttlMs, 'label', ...queue]);
  }

  release(name: string, id: string, replyAddress = '=me') {
    return this.run(scripts.release, this.keys(name), [id, replyAddress]);
  }

  abandon(name: string, id: string, { replyAddress = '=me', px = 30_000 } = {}) {
    return this.run(scripts.abandon, this.keys(name), [
      id,
      replyAddress,
      `${id}|${px}|${replyAddress}|label`,
    ]);
  }

  check(
    name: string,
    replyAddress: string,
    waiters: readonly (readonly [id: string, position: number])[],
    { aliveMs = 5000, former = '' } = {},
  ) {
    const members = waiters.flatMap(([id, position]) => [`${id}|30000|${replyAddress}|label`, position, '']);
    const args = [aliveMs, replyAddress, former, waiters.length, ...members];
    return this.run(scripts.check, this.keys(name), args);
  }

  /** Of the grants that hold now. */
  async renew(...leases: readonly (readonly [name: string, id: string, ttlMs: number])[]) {
    const locks = leases.map(([name]) => this.lock(name));
    const args = leases.map(async ([name, id, ttlMs]) => [`${id}|-|${await this.token(name, id)}|`, ttlMs]);
    return this.run(scripts.renew, locks, (await Promise.all(args)).flat());
  }

  /** Of the hold of an id; 0 if there is none. */
  async token(name: string, id: string): Promise<string> {
    const value = await this.#redis.command('GET', this.lock(name)).catch(() => '');
    const [, own = '0'] = /^[^|]*\|[+-]\|(\d+)\|/.exec(String(value)) ?? [];
    if (String(value).startsWith(`${id}|`)) return own;
    const share = await this.#redis.command('HGET', this.holders(name), id).catch(() => null);
    return String(share ?? '').split('|')[2] ?? '0';
  }

  /** A mode as `acquire` takes it: `0:0` a reader, `0:` exclusive, `8:2` 2 of 8. */
  take(
    name: string,
    id: string,
    mode: string,
    {
      ttlMs = 30_000,
      replyAddress,
      steal = false,
    }: { ttlMs?: number; replyAddress?: string; steal?: boolean } = {},
  ) {
    const enqueue = replyAddress === undefined ? ['', '', '', ''] : [replyAddress, 5000, '', ''];
    const args = [id, ttlMs, 'label', ...enqueue, ...mode.split(':')];
    return this.run(scripts.acquire, this.allKeys(name), steal ? [...args, 'steal'] : args);
  }

  many(...wanted: readonly (readonly [name: string, id: string, mode: string])[]) {
    return this.run(
      scripts.many,
      wanted.flatMap(([name]) => this.allKeys(name)),
      wanted.flatMap(([, id, mode]) => [id, 30_000, 'label', ...mode.split(':')]),
    );
  }

  releaseShare(name: string, id: string, weight = 0, replyAddress = '=me') {
    return this.run(scripts.release, this.allKeys(name), [id, replyAddress, weight]);
  }

  async renewShares(...leases: readonly (readonly [name: string, id: string, ttlMs: number])[]) {
    const args = leases.map(async ([name, id, ttlMs]) => [id, await this.token(name, id), ttlMs]);
    return this.run(
      scripts.renewShares,
      leases.flatMap(([name]) => [this.lock(name), this.holders(name)]),
      (await Promise.all(args)).flat(),
    );
  }

  downgrade(name: string, id: string, replyAddress = '=me') {
    return this.run(scripts.downgrade, this.allKeys(name), [id, replyAddress]);
  }

  resize(name: string, limit: number, replyAddress = '=me') {
    return this.run(scripts.resize, this.allKeys(name), [limit, replyAddress]);
  }

  forceRelease(name: string, id?: string, replyAddress = '=me') {
    return this.run(scripts.forceRelease, this.allKeys(name), [
      replyAddress,
      ...(id === undefined ? [] : [id]),
    ]);
  }

  async inspect(name: string) {
    const [lock, , queue] = this.keys(name);
    const keys = [lock, queue, this.holders(name)];
    const [value, pttl, now, shares, limit, ...waiting] = (await this.run(scripts.inspect, keys, [])) as [
      string | null,
      number,
      number,
      string[],
      string | null,
      ...string[],
    ];
    const holders = sharesOf(shares).filter(({ endsAt }) => endsAt > now);
    const waiters = waiting.filter((_, at) => at % 2 === 0).map((member) => member.replace(/\|.*/, ''));
    return { value, pttl, now, limit, holders: holders.map(({ id }) => id), waiters };
  }

  /** Makes a share end, as if its time had passed. */
  async expire(name: string, id: string): Promise<void> {
    const holders = this.holders(name);
    const share = String(await this.#redis.command('HGET', holders, id));
    await this.#redis.command('HSET', holders, id, share.replace(/^\d+\|\d+/, '1|1'));
    // Sets `first` of the mark to 0: a share may have ended.
    await this.run(scripts.releaseKey, [this.lock(name)], ['nobody']);
  }

  /** The limit and the used weight in the mark. */
  async mark(name: string): Promise<string> {
    return String(await this.#redis.command('GET', this.lock(name))).replace(/\|[+-].*/, '');
  }

  holders(name: string): string {
    return `{${this.lock(name)}}:h`;
  }

  allKeys(name: string): string[] {
    return [...this.keys(name), this.holders(name)];
  }

  lock(name: string): string {
    return keysOfLock(`lock::${name}`).lock;
  }

  keys(name: string): [lock: string, token: string, queue: string] {
    const { lock, token, queue } = keysOfLock(`lock::${name}`);
    return [lock, token, queue];
  }
}

/** The shares of a list `id, share, …`, by token. */
export function sharesOf(listed: readonly string[]): (Share & { readonly id: string })[] {
  const shares = listed.flatMap((id, at) => {
    const share = at % 2 === 0 ? parseShare(String(listed[at + 1])) : undefined;
    return share === undefined ? [] : [{ id, ...share }];
  });
  return shares.sort((a, b) => Number(a.token - b.token));
}
