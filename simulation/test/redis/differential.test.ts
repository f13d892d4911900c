import { type RedisServer, startRedis } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scripts } from '../../../packages/redis-protocol/src/generated/scripts.ts';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { LuaScripts } from '../../src/redis/lua-scripts.ts';
import { SimulatedRedis } from '../../src/redis/simulated-redis.ts';
import { type KeyState, statesOf } from './key-state.ts';
import { RandomSteps, channelsOf, type RandomStep, type ScriptName } from './random-step.ts';
import { type Outcome, RealRedis } from './real-redis.ts';

/** `LOCKS_STEPS=100000` runs each script that often; `LOCKS_SEED=n` replays a run. */
const STEPS_PER_SCRIPT = Number(process.env['LOCKS_STEPS'] ?? 125);
const SEED = Number(process.env['LOCKS_SEED'] ?? 1);
/** Runs at once, each in a database of its own. */
const RUNS = 8;
/** So many steps, then an empty keyspace again. */
const STEPS_PER_KEYSPACE = 60;
const NAMES = Object.keys(scripts) as ScriptName[];
const START_MICROS = 1_763_840_000_000_000;

let server: RedisServer;
let lua: LuaScripts;
beforeAll(async () => {
  server = await startRedis({ args: ['--databases', String(RUNS)] });
  lua = await LuaScripts.load();
});
const comparisons: Comparison[] = [];
afterAll(async () => {
  for (const comparison of comparisons) comparison.close();
  await server.stop();
});

/** The same steps on a simulated and on a real server. */
class Comparison {
  readonly counts = new Map<string, number>();
  errors = 0;
  handOffs = 0;
  readonly #random: SeededRandom;
  readonly #steps: RandomSteps;
  readonly #real: RealRedis;
  readonly #simulated: SimulatedRedis;
  #micros = START_MICROS;
  #messages: string[] = [];

  constructor(run: number, real: RealRedis) {
    this.#random = new SeededRandom(SEED).fork(run);
    this.#steps = new RandomSteps(this.#random.fork(1), run);
    this.#real = real;
    this.#simulated = new SimulatedRedis({ lua, micros: () => this.#micros });
    for (const { source } of Object.values(scripts)) this.#simulated.execute(['SCRIPT', 'LOAD', source]);
    for (const channel of channelsOf(run)) {
      this.#simulated.subscribe(channel, (text) => this.#messages.push(`${channel} ${text}`));
    }
  }

  close(): void {
    this.#real.close();
  }

  get repeated(): number {
    return this.#real.repeated;
  }

  /** Runs until each script ran `count` times. */
  async run(count: number): Promise<void> {
    for (let step = 0; NAMES.some((name) => (this.counts.get(name) ?? 0) < count); step++) {
      if (step % STEPS_PER_KEYSPACE === 0) this.#simulated.execute(['FLUSHALL']);
      const states = this.#passTime();
      const wanted = NAMES.filter((name) => (this.counts.get(name) ?? 0) < count);
      // Those that are still to run come more often, and acquisitions are what all others need.
      const name = this.#random.chance(0.3) ? 'acquire' : this.#random.pick(wanted);
      const next = this.#random.chance(0.08)
        ? this.#steps.write(states, this.#micros)
        : this.#steps.script(name, states, this.#micros);
      this.counts.set(next.name, (this.counts.get(next.name) ?? 0) + 1);
      await this.#compare(next, states);
    }
  }

  /** Most often little time, sometimes more than a ttl, seldom a step back. */
  #passTime(): readonly KeyState[] {
    const random = this.#random;
    if (random.chance(0.85)) this.#micros += random.between(0, 3_000);
    else if (random.chance(0.8)) this.#micros += random.between(0, 900_000);
    else if (random.chance(0.9)) this.#micros += random.between(0, 200_000_000);
    else this.#micros -= random.between(0, 3_000_000);
    for (;;) {
      const states = statesOf(this.#simulated, Math.floor(this.#micros / 1000));
      // No command gives a key its last millisecond.
      if (states.every(({ left }) => left !== 0)) return states;
      this.#micros += 1_000;
    }
  }

  async #compare({ name, script, keys, args }: RandomStep, states: readonly KeyState[]): Promise<void> {
    const rest = [String(keys.length), ...keys, ...args];
    const command = script ? ['EVALSHA', script.sha1, ...rest] : [name, ...args];
    const onReal = script ? ['EVALSHA', await this.#real.load(script.source), ...rest] : command;
    const [simulated, real] = [this.#simulate(command), await this.#real.run(states, this.#micros, onReal)];
    const seen = { ...real, reply: plain(real.reply) };
    if (JSON.stringify(simulated) !== JSON.stringify(seen)) {
      expect(
        simulated,
        JSON.stringify({ seed: SEED, micros: this.#micros, command, states }, null, 1),
      ).toEqual(seen);
    }
    if (typeof seen.reply === 'string' && seen.reply.startsWith('!')) this.errors += 1;
    this.handOffs += seen.messages.length;
  }

  #simulate(command: readonly string[]): Outcome {
    this.#messages = [];
    let reply: unknown;
    try {
      reply = this.#simulated.execute(command);
    } catch (error) {
      reply = error;
    }
    const states = statesOf(this.#simulated, Math.floor(this.#micros / 1000));
    return { reply: plain(reply), states, messages: this.#messages };
  }
}

/** A reply without the place in the script where it failed: one of the two has more on its first line. */
function plain(reply: unknown): unknown {
  if (reply instanceof Error) return `!${reply.message.replace(/ script: [0-9a-f]{40}.*$/, '')}`;
  return Array.isArray(reply) ? reply.map(plain) : reply;
}

it('replies and keyspaces of every script are those of a real server, byte by byte', {
  timeout: 36_000_000,
}, async () => {
  for (let run = 0; run < RUNS; run++) {
    comparisons.push(new Comparison(run, await RealRedis.open(server, run, channelsOf(run))));
  }
  const began = performance.now();
  await Promise.all(comparisons.map((comparison) => comparison.run(Math.ceil(STEPS_PER_SCRIPT / RUNS))));
  const total = (of: (comparison: Comparison) => number) =>
    comparisons.reduce((sum, comparison) => sum + of(comparison), 0);
  for (const name of NAMES) {
    expect(
      total(({ counts }) => counts.get(name) ?? 0),
      name,
    ).toBeGreaterThanOrEqual(STEPS_PER_SCRIPT);
  }
  // Without these the steps would show little.
  expect(total(({ handOffs }) => handOffs)).toBeGreaterThan(0);
  expect(total(({ errors }) => errors)).toBeGreaterThan(0);
  if (process.env['LOCKS_STEPS'] !== undefined) {
    const steps = total(({ counts }) => [...counts.values()].reduce((sum, count) => sum + count, 0));
    console.log({
      steps,
      scripts: NAMES.length,
      errors: total(({ errors }) => errors),
      messages: total(({ handOffs }) => handOffs),
      repeated: total(({ repeated }) => repeated),
      seconds: Math.round((performance.now() - began) / 1000),
    });
  }
});
