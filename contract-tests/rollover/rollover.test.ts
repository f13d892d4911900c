import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SafetyViolation } from '@locks/core/conformance';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import { LockProcess } from '../src/rollover/lock-process.ts';
import { type OldLock, oldLocks, ourCommand } from '../src/rollover/old-locks.ts';

/** How many processes the application has. `ROLLOVER_PROCESSES=20` is slower, and finds no more. */
const PROCESSES = Number(process.env['ROLLOVER_PROCESSES'] ?? 4);
const SECTIONS = 200;
const TTL_MS = 30_000;
const WAIT_MS = 60_000;
/** Some libraries try for so long at least. */
const TRY_MS = 500;
/** As the page advises while old processes are there. */
const CHECK_MS = 200;
/** So rarely that no regular check comes during a test. */
const RARELY_MS = 60_000;
const NAME = 'sku:42';

const missing = new Map(
  await Promise.all(oldLocks.map(async ({ name, build }) => [name, await build?.()] as const)),
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

let count = 0;
const freshName = (): string => `${NAME}:${++count}`;

async function open(
  old: OldLock,
  { ttlMs = TTL_MS, maxPollMs = CHECK_MS } = {},
): Promise<{ theirs: LockProcess; ours: LockProcess; [Symbol.asyncDispose](): Promise<void> }> {
  const library = libraries[++count % libraries.length] ?? libraries[0];
  const [theirs, ours] = await Promise.all([
    LockProcess.start(old.command(redis, ttlMs)),
    LockProcess.start(ourCommand(library, redis, { ttlMs, prefix: old.prefix, maxPollMs })),
  ]);
  const end = async () => void (await Promise.all([theirs.kill(), ours.kill()]));
  return { theirs, ours, [Symbol.asyncDispose]: end };
}

describe.each(oldLocks)('$name beside ours', { timeout: 30_000 * PROCESSES }, (old) => {
  const why = missing.get(old.name);
  const test = why === undefined ? it : it.skip;
  const absent = why === undefined ? '' : ` (not run: ${why})`;

  test(`excludes ours while it holds, and ours waits until it frees${absent}`, async () => {
    await using both = await open(old);
    const { theirs, ours } = both;
    const name = freshName();
    expect(await theirs.take(name, TRY_MS)).toBe(true);
    expect(await redis.command('KEYS', '*')).toContain(old.prefix + name);
    expect(await ours.take(name, 0)).toBe(false);
    expect(await ours.take(name, TRY_MS)).toBe(false);
    const entered = ours.take(name, WAIT_MS);
    await untilQueued(old.prefix + name);
    expect(await theirs.free()).toBe(true);
    expect(await entered).toBe(true);
    expect(await ours.free()).toBe(true);
  });

  test(`is excluded while ours holds, and enters when ours is released${absent}`, async () => {
    await using both = await open(old);
    const { theirs, ours } = both;
    const name = freshName();
    expect(await ours.take(name, 0)).toBe(true);
    expect(await theirs.take(name, TRY_MS)).toBe(false);
    const entered = theirs.take(name, WAIT_MS);
    expect(await ours.free()).toBe(true);
    expect(await entered).toBe(true);
    expect(await theirs.free()).toBe(true);
    expect(await ours.take(name, 0)).toBe(true);
  });

  test(`frees nothing of ours when it frees too late, nor does ours of it${absent}`, async () => {
    await using both = await open(old);
    const { theirs, ours } = both;
    for (const [late, next] of [
      [theirs, ours],
      [ours, theirs],
    ] as const) {
      const name = freshName();
      const key = old.prefix + name;
      expect(await late.take(name, TRY_MS)).toBe(true);
      // As if the hold had ended by itself.
      expect(await redis.command('DEL', key)).toBe(1);
      expect(await next.take(name, TRY_MS)).toBe(true);
      const value = await redis.command('GET', key);
      await late.free();
      expect(await redis.command('GET', key)).toBe(value);
      expect(await next.free()).toBe(true);
      expect(await redis.command('EXISTS', key)).toBe(0);
    }
  });

  test(`ends by its ttl when its process is killed, and ours enters then, without a regular check${absent}`, async () => {
    await using both = await open(old, { ttlMs: 1_000, maxPollMs: RARELY_MS });
    const { theirs, ours } = both;
    const name = freshName();
    const takenFrom = performance.now();
    expect(await theirs.take(name, TRY_MS)).toBe(true);
    await theirs.kill();
    expect(await ours.take(name, WAIT_MS)).toBe(true);
    expect(performance.now() - takenFrom).toBeGreaterThan(950);
  });

  test(`is replaced process by process, and no two are inside at once${absent}`, async () => {
    const sections = await rollOver(old, old.prefix);
    expect(sections.length).toBeGreaterThanOrEqual(SECTIONS);
    assertApart(sections);
    expect(await redis.command('EXISTS', old.prefix + NAME)).toBe(0);
  });
});

it('the judge sees two inside at once, where ours has the prefix of no library', async () => {
  const [old] = oldLocks as readonly [OldLock];
  expect(() => assertApart([section('a', 0, 2), section('b', 1, 3)])).toThrow(SafetyViolation);
  const sections = await rollOver(old, 'another:');
  expect(() => assertApart(sections)).toThrow(SafetyViolation);
});

interface Section {
  readonly who: string;
  /** By the clock of the test: after the answer that it is taken, and before the order to free it. */
  readonly enteredAt: number;
  readonly leftAt: number;
}

function section(who: string, enteredAt: number, leftAt: number): Section {
  return { who, enteredAt, leftAt };
}

/**
 * Replaces the processes of an application one after the other. Each takes one lock again and again, with a pause in between.
 * A process is replaced when there were enough sections, by both sides where both are there.
 */
async function rollOver(old: OldLock, prefix: string): Promise<Section[]> {
  const sections: Section[] = [];
  await using stack = new AsyncDisposableStack();
  const start = async (command: readonly [string, ...string[]]): Promise<LockProcess> =>
    stack.use(await LockProcess.start(command));
  const all = Array.from({ length: PROCESSES }, (_, index) => index);
  const ofOld = await Promise.all(all.map(() => start(old.command(redis, TTL_MS))));
  const running = all.map((index) => loop(`old ${index}`, ofOld[index] as LockProcess, sections));
  const options = { ttlMs: TTL_MS, prefix, maxPollMs: CHECK_MS };
  for (const index of all) {
    await untilBothEntered(sections, index > 0);
    await running[index]?.stop();
    await ofOld[index]?.end();
    const ours = await start(ourCommand(libraries[index % 2] ?? libraries[0], redis, options));
    running[index] = loop(`new ${index}`, ours, sections);
  }
  await waitUntil(() => sections.length >= SECTIONS, { what: 'the last sections', timeoutMs: WAIT_MS });
  await Promise.all(running.map(({ stop }) => stop()));
  return sections;
}

async function untilBothEntered(sections: readonly Section[], hasBoth: boolean): Promise<void> {
  const from = sections.length;
  const enough = (): boolean => {
    const since = sections.slice(from);
    const old = since.filter(({ who }) => who.startsWith('old')).length;
    const isFair = old >= 3 && (!hasBoth || since.length - old >= 3);
    return since.length >= SECTIONS / (PROCESSES + 1) && isFair;
  };
  await waitUntil(enough, { what: 'sections of both sides', timeoutMs: WAIT_MS });
}

function loop(who: string, one: LockProcess, sections: Section[]): { stop(): Promise<void> } {
  let isStopped = false;
  const work = async (): Promise<void> => {
    while (!isStopped) {
      if (!(await one.take(NAME, WAIT_MS))) throw new Error(`${who} got no lock: ${one.said}`);
      const enteredAt = performance.now();
      await sleep(2);
      sections.push(section(who, enteredAt, performance.now()));
      if (!(await one.free())) throw new Error(`${who} had lost its lock: ${one.said}`);
      // While ours wait all the time, they hand the lock on among themselves: old ones need moments in which it is free.
      await sleep(randomInt(15 * PROCESSES));
    }
  };
  const done = work();
  done.catch(() => undefined);
  return {
    async stop() {
      isStopped = true;
      await done;
    },
  };
}

function assertApart(sections: readonly Section[]): void {
  const sorted = sections.toSorted((a, b) => a.enteredAt - b.enteredAt);
  for (const [index, later] of sorted.entries()) {
    const earlier = sorted[index - 1];
    if (earlier !== undefined && later.enteredAt < earlier.leftAt)
      throw new SafetyViolation(`Two were inside at once:\n${JSON.stringify([earlier, later])}`);
  }
}

/** Resolves when somebody waits for a lock key of ours. */
async function untilQueued(key: string): Promise<void> {
  const isQueued = async () => (await redis.command('EXISTS', `{${key}}:q`)) === 1;
  await waitUntil(isQueued, { what: `a waiter for ${key}` });
}
