/**
 * Blocks the event loop right after calls to a healthy store: run by `stall.test.ts`, in a process of its own, which reaches the store
 * without the proxies of the suite. Prints JSON.
 *
 * Arguments: the name of a harness, whose store was set up already; the length of a block in milliseconds; how often each call is made.
 */
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import { createLocks, type LockManager } from '@locks/core';
import { type Harness, harnessIn } from '@locks/core/conformance';
import { harnessUrl } from '../src/harness-names.ts';

/** What became of the calls of one kind. */
interface Counts {
  readonly calls: number;
  /** How many of them rejected, and what the first of them said. */
  rejected: number;
  says?: string;
  /** How many locks were held after their calls had ended. */
  left: number;
}

/** The counts of each kind of call. */
export type StallReport = Readonly<Record<string, Counts>>;

const [name = '', blockMs, rounds] = process.argv.slice(2);
const TTL_MS = 10_000;
/** Shorter than every block. */
const WAIT_MS = 200;

const harness = harnessIn((await import(harnessUrl(name).href)) as object) as Harness;
const locks = createLocks(await harness.createBackend(), { ttlMs: TTL_MS, answerMs: WAIT_MS });
let names = 0;

/** Keeps the event loop from turning, as a long computation does, but leaves the processor to the server. */
function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs));
}

function freshName(): string {
  names += 1;
  return `stall ${process.pid} ${Date.now()} ${names}`;
}

async function count(
  call: (lock: string, round: number) => Promise<unknown>,
  observer: () => Promise<LockManager> = async () => locks,
): Promise<Counts> {
  const counts: Counts = { calls: Number(rounds), rejected: 0, left: 0 };
  for (let round = 0; round < counts.calls; round += 1) {
    const lock = freshName();
    try {
      await call(lock, round);
    } catch (error) {
      counts.rejected += 1;
      counts.says ??= String(error);
    }
    const { holders } = await (await observer()).inspect(lock);
    if (holders.length > 0) counts.left += 1;
  }
  return counts;
}

async function warmUp(manager = locks): Promise<void> {
  const lease = await manager.lock(freshName()).acquire();
  await lease.release();
}

await warmUp();
const calls = {
  release: await count(async (lock) => {
    const lease = await locks.lock(lock).acquire();
    const released = lease.release();
    block();
    await released;
  }),
  releaseInFlight: await count(async (lock, round) => {
    const lease = await locks.lock(lock).acquire();
    const released = lease.release();
    released.catch(() => {});
    await (round % 2 === 0 ? delay(0) : setImmediate());
    block();
    await released;
  }),
  acquire: await count(async (lock) => {
    const acquired = locks.lock(lock).acquire({ waitMs: WAIT_MS });
    block();
    await (await acquired).release();
  }),
  tryAcquire: await count(async (lock) => {
    const acquired = locks.lock(lock).tryAcquire();
    block();
    const lease = await acquired;
    if (lease === undefined) throw new Error('a free lock was not acquired');
    await lease.release();
  }),
  renew: await count(async (lock) => {
    const lease = await locks.lock(lock).acquire();
    const renewed = lease.renew();
    block();
    await renewed;
    await lease.release();
  }),
  inspect: await count(async (lock) => {
    const inspected = locks.inspect(lock);
    block();
    await inspected;
  }),
};
// Clients of one process may share a pool, which ends with one of them: each look at a lock is that of a new one.
const close = await count(
  async (lock) => {
    const closing = createLocks(await harness.createBackend(), { ttlMs: TTL_MS, answerMs: WAIT_MS });
    await warmUp(closing);
    await closing.lock(lock).acquire();
    const closed = closing.close();
    block();
    await closed;
  },
  async () => createLocks(await harness.createBackend()),
);
console.log(JSON.stringify({ ...calls, close } satisfies StallReport));
process.exit();
