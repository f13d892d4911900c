/**
 * Thousands of waiters of one process on one lock that give up within a second, and what that costs the process: run by
 * `many-waiters.test.ts`, in a process of its own, since a test runner keeps memory and works beside. Prints JSON.
 *
 * Arguments: the name of a harness, whose store was set up already; the number of waiters; the milliseconds from the first call to
 * the first end, within which all must be in the queue.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createLocks, isLockError, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';

export interface Cost {
  /** Why the other lease was lost. */
  readonly lost: string | undefined;
  /** How the waits ended: how many with which code. */
  readonly ends: Readonly<Record<string, number>>;
  /** The longest time of the event loop's thread between two ticks of a timer: what others did on its core does not count. */
  readonly busiestMs: number;
  /** The longest time between two ticks, that of others included. */
  readonly delayMs: number;
  /** What the releases took right after the waits had ended, of another lock and of the lock that was waited for. */
  readonly releaseMs: readonly number[];
  /** Until nobody was left in the queue of the store. */
  readonly emptyMs: number;
  /** The heap afterwards, more than before. */
  readonly heapMb: number;
}

const TICK_MS = 5;
const GIVE_UP_WITHIN_MS = 1_000;
const CALLS_A_TURN = 100;
/** Renewed every third of it. */
const OTHER_TTL_MS = 3_000;

const [harnessName = '', waiters, enqueueMs] = process.argv.slice(2);
const { default: harness } = (await import(`../src/harnesses/${harnessName}.ts`)) as { default: Harness };
const locks: LockManager = createLocks(await harness.createBackend());

async function giveUpTogether(count: number, enqueueMs: number): Promise<Omit<Cost, 'heapMb'>> {
  const ticks = watchTicks();
  const crowded = await locks.lock('crowded').acquire({ ttlMs: 60_000 });
  const other = await locks.lock('other').acquire({ ttlMs: OTHER_TTL_MS });
  const ends: Record<string, number> = {};
  const startedAt = performance.now();
  const waits: Promise<void>[] = [];
  for (let index = 0; index < count; index += 1) {
    const endsAt = startedAt + enqueueMs + (index * GIVE_UP_WITHIN_MS) / count;
    waits.push(
      locks
        .lock('crowded')
        .acquire({ waitMs: endsAt - performance.now() })
        .then(
          () => 'granted',
          (error: unknown) => (isLockError(error) ? error.code : String(error)),
        )
        .then((end) => void (ends[end] = (ends[end] ?? 0) + 1)),
    );
    // The calls themselves are the application's work: it may make so many in a turn.
    if (index % CALLS_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(waits);
  const endedAt = performance.now();
  const releaseMs: number[] = [];
  let lost = other.signal.aborted ? String(other.signal.reason) : undefined;
  for (const lease of [other, crowded]) {
    const sentAt = performance.now();
    await lease.release().catch((error: unknown) => (lost ??= String(error)));
    releaseMs.push(Math.round(performance.now() - sentAt));
  }
  while ((await locks.inspect('crowded')).waiters.length > 0) await delay(20);
  return { lost, ends, ...ticks(), releaseMs, emptyMs: Math.round(performance.now() - endedAt) };
}

function watchTicks(): () => Pick<Cost, 'busiestMs' | 'delayMs'> {
  let [busiestMs, delayMs] = [0, 0];
  let used = process.threadCpuUsage();
  let tickedAt = performance.now();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(used);
    busiestMs = Math.max(busiestMs, Math.round((user + system) / 1_000));
    delayMs = Math.max(delayMs, Math.round(performance.now() - tickedAt));
    used = process.threadCpuUsage();
    tickedAt = performance.now();
  }, TICK_MS);
  return () => {
    clearInterval(timer);
    return { busiestMs, delayMs };
  };
}

async function heapUsed(): Promise<number> {
  for (let round = 0; round < 5; round += 1) {
    globalThis.gc?.();
    await delay(50);
  }
  return process.memoryUsage().heapUsed;
}

// Code is compiled and connections are opened before anything is measured.
await giveUpTogether(200, 1_000);
const before = await heapUsed();
const cost = await giveUpTogether(Number(waiters), Number(enqueueMs));
const heapMb = Math.round(((await heapUsed()) - before) / 1e5) / 10;
await locks.close();
console.log(JSON.stringify({ ...cost, heapMb } satisfies Cost));
process.exit();
