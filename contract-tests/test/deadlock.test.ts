import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { type CallableProcess, startProcess } from '@locks/core/conformance/process';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { DeadlockCommands, ProcessSetup, WaitOutcome, WantedLock } from '../src/deadlock/commands.ts';
import { harnessUrl } from '../src/harness-names.ts';

const MAIN = new URL('../src/deadlock/main.ts', import.meta.url);
const PERIOD = 1_000;
const TTL_MS = 6_000;
/** What a busy machine may add. */
const LATE_MS = 2_000;
/** The beginning of the names of what is kept of long waits. */
const WAITS = '@locks/waits/';
/** How often four processes take locks in bad orders; 1 000 is a long run. */
const ROUNDS = Number(process.env['LOCKS_DEADLOCK_ROUNDS'] ?? 40);

type Process = CallableProcess<DeadlockCommands>;

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
const STORES = ['redis-ioredis', 'postgres-lease', 'sqlite'].filter((store) => !missing.has(store));

describe.each(STORES)('a circle over processes, on %s', { timeout: 120_000 }, (store) => {
  let env: Readonly<Record<string, string>>;
  let observer: LockManager;
  let teardown: (() => Promise<void>) | undefined;
  let run: string;
  beforeAll(async () => {
    const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    env = started?.env ?? {};
    Object.assign(process.env, env);
    run = randomBytes(4).toString('hex');
    observer = createLocks(await harness.createBackend()) as LockManager;
  });
  afterAll(async () => {
    await observer?.close();
    await teardown?.();
  });

  const name = (short: string): string => `deadlock ${run} ${short}`;

  async function start(label: string, options: Partial<ProcessSetup> = {}): Promise<Process> {
    const setup: ProcessSetup = {
      store,
      env,
      label,
      deadlockAfterMs: PERIOD,
      ttlMs: TTL_MS,
      waitMs: 60_000,
      ...options,
    };
    const started = await startProcess<DeadlockCommands>(MAIN, [JSON.stringify(setup)]);
    onTestFinished(() => started.kill());
    return started;
  }

  /** Each process holds the first lock, and waits for the second one once all hold theirs. */
  async function outcomesOf(
    members: readonly (readonly [hold: WantedLock, want: WantedLock])[],
  ): Promise<WaitOutcome[]> {
    const processes = await Promise.all(members.map((_, index) => start(`process ${index}`)));
    await Promise.all(processes.map((one, index) => one.call.hold([members[index]?.[0] as WantedLock])));
    return Promise.all(processes.map((one, index) => one.call.want(members[index]?.[1] as WantedLock)));
  }

  /** One gave up within three periods, and all others went on. */
  function expectOneDeadlock(outcomes: readonly WaitOutcome[]): WaitOutcome {
    const refused = outcomes.filter(({ code }) => code !== undefined);
    expect(refused.map(({ code }) => code)).toEqual(['LOCK_DEADLOCK']);
    const [victim] = refused as [WaitOutcome];
    expect(victim.tookMs).toBeGreaterThan(PERIOD);
    expect(victim.tookMs).toBeLessThan(3 * PERIOD + LATE_MS);
    return victim;
  }

  async function edges(): Promise<string[]> {
    const names: string[] = [];
    for await (const state of observer.list(WAITS)) names.push(state.name);
    return names;
  }

  it.each([2, 3])('of %i ends with one error, and leaves nothing', async (count) => {
    const names = ['p', 'q', 'r'].slice(0, count).map((short) => name(`${count} ${short}`));
    const outcomes = await outcomesOf(
      names.map((held, index) => [{ name: held }, { name: names[(index + 1) % count] as string }] as const),
    );
    const { circle } = expectOneDeadlock(outcomes);
    expect(circle).toHaveLength(count);
    expect(circle?.map((one) => one.name).toSorted()).toEqual(names);
    await expect.poll(edges, { timeout: 10_000 }).toEqual([]);
  });

  it('of readers who want to write', async () => {
    const [p, q] = [name('readers p'), name('readers q')];
    expectOneDeadlock(
      await outcomesOf([
        [
          { name: p, how: 'read' },
          { name: q, how: 'write' },
        ],
        [
          { name: q, how: 'read' },
          { name: p, how: 'write' },
        ],
      ]),
    );
  });

  it('through the last permits', async () => {
    const [slots, q] = [{ name: name('permits'), how: 'permit' } as const, { name: name('permits q') }];
    expectOneDeadlock(
      await outcomesOf([
        [slots, q],
        [slots, q],
        [q, slots],
      ]),
    );
  });

  it('is not seen in a long wait for a process that goes on', async () => {
    const [p, q] = [name('long p'), name('long q')];
    const [a, b] = await Promise.all([start('a'), start('b')]);
    await Promise.all([a.call.hold([{ name: p }]), b.call.hold([{ name: q }])]);
    const wait = a.call.want({ name: q });
    await sleep(4 * PERIOD);
    expect(await edges()).toHaveLength(1);
    await b.call.want({ name: name('long free') });
    expect((await wait).code).toBe(undefined);
  });

  it('is none where one of the processes is dead: its lock ends by its ttl, and what it told as well', async () => {
    const [p, q] = [name('dead p'), name('dead q')];
    const [a, b] = await Promise.all([start('a'), start('b')]);
    await Promise.all([a.call.hold([{ name: p }]), b.call.hold([{ name: q }])]);
    const wait = a.call.want({ name: q }).catch(() => 'killed' as const);
    await expect.poll(edges, { timeout: 10_000 }).toHaveLength(1);
    await a.kill();
    expect(await wait).toBe('killed');
    expect((await b.call.want({ name: p })).code).toBe(undefined);
    await expect.poll(edges, { timeout: 10_000 }).toEqual([]);
  });

  it('is never what a wait ends for with LOCK_TIMEOUT, whatever the orders', {
    timeout: 60_000 + ROUNDS * 4_000,
  }, async () => {
    // No readers: one behind a writer who waits for that reader's own lease is a circle that nothing finds.
    const wanted: WantedLock[] = ['p', 'q', 'r'].map((short) => ({ name: name(`random ${short}`) }));
    wanted.push({ name: name('random permits'), how: 'permit' });
    // Four processes share four locks: all that would make a wait that long is a circle.
    const processes = await Promise.all(
      Array.from({ length: 4 }, (_, index) =>
        start(`random ${index}`, { deadlockAfterMs: 200, waitMs: 20_000 }),
      ),
    );
    const work = await Promise.all(processes.map(({ call }) => call.workAtRandom(wanted, ROUNDS)));
    expect(work.map(({ done }) => done)).toEqual(Array(4).fill(ROUNDS));
    expect(work.map(({ timeouts }) => timeouts)).toEqual([0, 0, 0, 0]);
    const deadlocks = work.reduce((sum, one) => sum + one.deadlocks, 0);
    console.log(`${store}: ${ROUNDS} rounds of four processes, ${deadlocks} deadlocks, no LOCK_TIMEOUT`);
    expect(deadlocks).toBeGreaterThan(0);
    await expect.poll(edges, { timeout: 10_000 }).toEqual([]);
  });
});
