import { expect, it } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { type ModelEntry, Model, type ModelMode } from './model.ts';
import { client, number, redis, useServer, word } from './lab.ts';

useServer();

const RUNS = 60;
const STEPS = 50;
/** Limits with two digits too, so that the mark changes its length. */
const LIMITS = 12;
const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
/** `LOCKS_SEED=n` replays one run. */
const replayed = process.env['LOCKS_SEED'];

/** Numerical Recipes' generator, good enough to choose operations. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const argument = ({ limit, weight }: ModelMode) => `${limit}:${weight ?? ''}`;

/** One resource under random operations, and its model. */
class Run {
  readonly log: string[] = [];
  readonly #model = new Model();
  readonly #name: string;
  readonly #pick: (below: number) => number;
  readonly #positions = new Map<string, number>();
  /** An id is used for one acquisition after another; the number makes each id unique. */
  readonly #generation = new Map<string, number>();
  #lastToken = 0;

  constructor(seed: number) {
    this.#name = `run-${seed}`;
    this.#pick = random(seed);
  }

  async step(): Promise<void> {
    const { holders, queue } = this.#model;
    const living = [...holders, ...queue];
    switch (this.#pick(10)) {
      case 0:
      case 1:
      case 2:
        return this.#take(this.#entry(living), this.#pick(3) > 0);
      case 3:
        return this.#many(this.#entry(living));
      case 4:
      case 5:
        return this.#release(holders[this.#pick(holders.length || 1)]);
      case 6:
        return this.#abandon(living[this.#pick(living.length || 1)]);
      case 7:
        return this.#expire(holders[this.#pick(holders.length || 1)]);
      case 8:
        if (this.#model.limit > 0) return this.#resize(1 + this.#pick(LIMITS));
        return this.#downgrade(holders[this.#pick(holders.length || 1)]);
      default:
        return this.#steal(this.#entry(living));
    }
  }

  async judge(): Promise<void> {
    const { value, holders, waiters } = await client.inspect(this.#name);
    const { exclusive, limit, used } = this.#model;
    const expected = this.#model.holders.map(({ id }) => id).sort();
    if (expected.length === 0) expect(value).toBeNull();
    else if (exclusive) expect(value?.replace(/\|.*/, '')).toBe(expected[0]);
    else expect(value?.replace(/\|[+-]\|\d+\|\d+$/, '')).toBe(`*${limit}|${used}`);
    if (!exclusive) expect(holders.sort()).toEqual(expected);
    expect(waiters).toEqual(this.#model.queue.map(({ id }) => id));
    const ended = expected.length === 0 && waiters.length === 0;
    const [lock, , queue, held] = client.allKeys(this.#name) as [string, string, string, string];
    if (ended) expect(await redis.command('EXISTS', lock, queue, held)).toBe(0);
  }

  #entry(living: readonly ModelEntry[]): ModelEntry {
    const again = living[this.#pick(10)];
    if (again !== undefined) return again;
    const base = IDS[this.#pick(IDS.length)] as string;
    const id = `${base}${this.#generation.get(base) ?? 0}`;
    const known = living.find((entry) => entry.id === id);
    if (known !== undefined) return known;
    // Mostly of the kind that holds or waits.
    const permits = living.length > 0 && this.#pick(8) > 0 ? this.#model.limit > 0 : this.#pick(2) === 0;
    if (!permits) return { id, mode: { limit: 0, weight: this.#pick(3) > 0 ? 0 : undefined } };
    const limit = this.#model.limit > 0 && this.#pick(8) > 0 ? this.#model.limit : 1 + this.#pick(LIMITS);
    return { id, mode: { limit, weight: 1 + this.#pick(limit) } };
  }

  async #take(entry: ModelEntry, enqueue: boolean): Promise<void> {
    const { id, mode } = entry;
    // A waiting id waits until it is abandoned.
    if (this.#model.waits(id) && !enqueue) return;
    this.log.push(`take ${id} ${argument(mode)}${enqueue ? ' or wait' : ''}`);
    const held = this.#model.holds(id);
    const expected = this.#model.take(entry, enqueue);
    const options = enqueue ? { replyAddress: '!me' } : {};
    const reply =
      mode.weight === undefined
        ? await client.acquire(this.#name, id, options)
        : await client.take(this.#name, id, argument(mode), options);
    const status = word(reply);
    expect(status).toBe(expected);
    if (status === 'waiting') this.#positions.set(id, number(reply));
    if (status === 'granted' && !held) this.#minted(number(reply));
    if (status === 'conflict') this.#abandonId(id);
  }

  async #many(entry: ModelEntry): Promise<void> {
    if (this.#model.waits(entry.id)) return;
    this.log.push(`many ${entry.id} ${argument(entry.mode)}`);
    const expected = this.#model.many([entry]);
    const reply = await client.many([this.#name, entry.id, argument(entry.mode)]);
    expect(word(reply)).toBe(expected ? 'granted' : 'contended');
  }

  async #steal(entry: ModelEntry): Promise<void> {
    const { limit, holders, queue } = this.#model;
    // A steal in another kind of mode would mix two kinds.
    if (holders.length + queue.length > 0 && entry.mode.limit !== limit) return;
    if (this.#model.waits(entry.id)) return;
    this.log.push(`steal ${entry.id} ${argument(entry.mode)}`);
    for (const { id } of holders) if (id !== entry.id && !this.#model.holds(entry.id)) this.#abandonId(id);
    const held = this.#model.holds(entry.id);
    this.#model.steal(entry);
    const options = { steal: true, replyAddress: '!me' };
    const reply = await client.take(this.#name, entry.id, argument(entry.mode), options);
    if (!held) this.#minted(number(reply));
  }

  async #release(entry: ModelEntry | undefined): Promise<void> {
    if (entry === undefined) return;
    const { id, mode } = entry;
    this.log.push(`release ${id}`);
    this.#model.end(id);
    const reply =
      mode.weight === undefined
        ? await client.release(this.#name, id)
        : await client.releaseShare(this.#name, id, mode.weight);
    expect(word(reply)).toBe('released');
    this.#handed(reply, 1);
    this.#abandonId(id);
  }

  async #abandon(entry: ModelEntry | undefined): Promise<void> {
    if (entry === undefined) return;
    const { id, mode } = entry;
    this.log.push(`abandon ${id}`);
    this.#model.end(id);
    const reply = await client.run(scripts.abandon, client.keys(this.#name), [id, '=me', member(id, mode)]);
    this.#handed(reply, 1);
    this.#abandonId(id);
  }

  async #expire(entry: ModelEntry | undefined): Promise<void> {
    if (entry === undefined) return;
    const { id, mode } = entry;
    this.log.push(`expire ${id}`);
    this.#model.end(id);
    if (mode.weight === undefined) await redis.command('DEL', client.lock(this.#name));
    else await client.expire(this.#name, id);
    this.#abandonId(id);
    if (this.#model.queue.length + this.#model.holders.length === 0 && mode.weight !== undefined) {
      // No script comes to remove it; the mark and the holders would expire as well.
      await redis.command('DEL', client.lock(this.#name), client.holders(this.#name));
    }
    await this.#check();
    if (this.#model.queue.length === 0 && this.#model.holders.length > 0) {
      // Any script removes the ended share: another attempt, or an abandon of any id.
      if (this.#pick(2) === 0) return this.#take(this.#entry(this.#model.holders), true);
      await client.run(scripts.abandon, client.keys(this.#name), ['nobody', '=me', 'nobody']);
    }
  }

  async #downgrade(entry: ModelEntry | undefined): Promise<void> {
    if (entry === undefined || this.#model.limit > 0) return;
    this.log.push(`downgrade ${entry.id}`);
    this.#model.downgrade(entry.id);
    this.#handed(await client.downgrade(this.#name, entry.id), 2);
  }

  async #resize(limit: number): Promise<void> {
    this.log.push(`resize ${limit}`);
    const expected = this.#model.resize(limit);
    const reply = await client.resize(this.#name, limit);
    expect(word(reply)).toBe(expected);
    if (expected === 'set') this.#handed(reply, 1);
  }

  /** The heartbeat of the process of the waiters. */
  async #check(): Promise<void> {
    this.#model.serve();
    const waiting = [...this.#positions].filter(([id]) => this.#model.waits(id) || this.#model.holds(id));
    if (waiting.length === 0) return;
    const modes = new Map(
      [...this.#model.holders, ...this.#model.queue].map(({ id, mode }) => [id, mode] as const),
    );
    const args = waiting.flatMap(([id, position]) => {
      const mode = modes.get(id) as ModelMode;
      return [member(id, mode), position, mode.limit > 0 ? mode.limit : ''];
    });
    const [reply] = (await client.run(scripts.check, client.keys(this.#name), [
      ...[60_000, '!me', '', waiting.length],
      ...args,
    ])) as unknown[];
    expect(word(reply)).toBe('checked');
  }

  #handed(reply: unknown, from: number): void {
    if (!Array.isArray(reply)) return;
    for (let at = from; at < reply.length; at += 2) this.#minted(Number(reply[at + 1]));
  }

  #minted(token: number): void {
    expect(token).toBeGreaterThan(this.#lastToken);
    this.#lastToken = token;
  }

  #abandonId(id: string): void {
    this.#positions.delete(id);
    const base = id.charAt(0);
    if (!this.#model.holds(id) && !this.#model.waits(id)) {
      this.#generation.set(base, (this.#generation.get(base) ?? 0) + 1);
    }
  }
}

function member(id: string, { weight }: ModelMode): string {
  return `${id}|30000${weight === undefined ? '' : `:${weight}`}|!me|label`;
}

it('does what the model does, whatever the order of operations', async () => {
  const seeds =
    replayed === undefined ? Array.from({ length: RUNS }, (_, run) => Date.now() + run) : [+replayed];
  for (const seed of seeds) {
    const run = new Run(seed);
    try {
      for (let step = 0; step < STEPS; step += 1) {
        await run.step();
        await run.judge();
      }
    } catch (error) {
      throw new Error(`LOCKS_SEED=${seed}, after:\n${run.log.join('\n')}`, { cause: error });
    }
  }
});
