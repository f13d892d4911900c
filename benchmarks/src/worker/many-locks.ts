import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { BaseLease, LockManager } from '@locks/core';
import { machineNow } from '../measure/clock.ts';
import { countLiveTimers } from './live-timers.ts';
import type { Grown, Watched } from './methods.ts';

const LANES = 64;
const WAIT_MS = 1_000;
const QUEUE_UP_MS = 30_000;
/** Milliseconds between two samples of the event loop. */
const LOOK_MS = 1;

/** Many leases or many waiters of one lock manager, and how these become more and more. */
export class ManyLocks {
  readonly #locks: LockManager;
  readonly #leases: BaseLease[] = [];
  readonly #leaving = new AbortController();
  readonly #waits: Promise<void>[] = [];
  #holder: BaseLease | undefined;
  #joined: Promise<unknown> = Promise.resolve();

  constructor(locks: LockManager) {
    this.#locks = locks;
  }

  async holdAll(names: readonly string[]): Promise<number> {
    return await countLiveTimers(async () => {
      await inLanes(names, async (name) => {
        this.#leases.push(await this.#locks.lock(name).acquire({ waitMs: WAIT_MS }));
      });
      // All waits share one timer, which stays armed until the last of them would have ended.
      await delay(WAIT_MS);
    });
  }

  async watch(ms: number): Promise<Watched> {
    const histogram = monitorEventLoopDelay({ resolution: LOOK_MS });
    histogram.enable();
    await delay(ms);
    histogram.disable();
    // The monitor records the time from one sample to the next: the delay is what exceeds its resolution.
    const beyond = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - LOOK_MS);
    return {
      delayP99Ms: beyond(histogram.percentile(99)),
      delayMaxMs: beyond(histogram.max),
      valid: this.#leases.filter((lease) => lease.validForMs > 0).length,
    };
  }

  async queueUp(names: readonly string[]): Promise<void> {
    const queued = untilContended(names.length);
    const options = { waitMs: Number.POSITIVE_INFINITY, signal: this.#leaving.signal };
    for (const name of names) {
      const wait = this.#locks.lock(name).acquire(options);
      this.#waits.push(
        wait.then(
          () => {
            throw new Error(`${name} was not held`);
          },
          () => undefined,
        ),
      );
    }
    const late = delay(QUEUE_UP_MS, 'late', { ref: false });
    if ((await Promise.race([queued, late])) === 'late')
      throw new Error(`not all of ${names.length} waiters were queued after ${QUEUE_UP_MS / 1000} s`);
  }

  async enterAll(names: readonly string[]): Promise<number[]> {
    const enter = async (name: string): Promise<number> => {
      const lease = await this.#locks.lock(name).acquire({ waitMs: QUEUE_UP_MS });
      const enteredAt = machineNow();
      await lease.release();
      return enteredAt;
    };
    return await Promise.all(names.map(enter));
  }

  async untilWaiting(names: readonly string[], waiters: number): Promise<void> {
    const deadline = performance.now() + QUEUE_UP_MS;
    for (const name of names) {
      while ((await this.#locks.inspect(name)).waiters.length < waiters) {
        if (performance.now() > deadline) throw new Error(`${name} has fewer than ${waiters} waiters`);
        await delay(5);
      }
    }
  }

  async endsOf(names: readonly string[]): Promise<number[]> {
    const endOf = async (name: string): Promise<number> => {
      const { holders } = await this.#locks.inspect(name);
      return machineNow() + (holders[0]?.expiresInMs ?? 0);
    };
    return await Promise.all(names.map(endOf));
  }

  async letGo(): Promise<void> {
    this.#leaving.abort();
    await Promise.all(this.#waits.splice(0));
    await inLanes(this.#leases.splice(0), (lease) => lease.release());
  }

  async churn(count: number, lanes: number): Promise<{ before: number; after: number }> {
    const take = async (name: string): Promise<void> => {
      const lease = await this.#locks.lock(name).acquire();
      await lease.release();
    };
    // Objects that are made once, and compiled code, do not count as memory of a name.
    await inLanes(numbered('warm-up', 20_000), take, lanes);
    const before = heapInUse();
    await inLanes(numbered('name', count), take, lanes);
    return { before, after: heapInUse() };
  }

  async holdMore(count: number, lanes: number): Promise<Grown> {
    const held = this.#leases.length;
    const names = Array.from({ length: count }, (_, index) => `growth:${held + index}`);
    return await grown(() =>
      inLanes(
        names,
        async (name) => {
          this.#leases.push(await this.#locks.lock(name).acquire({ waitMs: QUEUE_UP_MS }));
        },
        lanes,
      ),
    );
  }

  async list(): Promise<number> {
    if (!this.#locks.capabilities.features.includes('list')) return 0;
    let listed = 0;
    for await (const { holders } of this.#locks.list()) listed += Math.sign(holders.length);
    return listed;
  }

  async join(name: string, waiters: number): Promise<Grown> {
    const lock = this.#locks.lock(name);
    const enter = async (): Promise<void> => {
      const lease = await lock.acquire({ waitMs: Number.POSITIVE_INFINITY });
      await lease.release();
    };
    this.#holder = await lock.acquire({ waitMs: QUEUE_UP_MS });
    return await grown(async () => {
      const queued = untilContended(waiters);
      this.#joined = Promise.all(Array.from({ length: waiters }, enter));
      await Promise.race([queued, this.#joined]);
    });
  }

  async serve(): Promise<number> {
    const from = performance.now();
    await this.#holder?.release();
    await this.#joined;
    return performance.now() - from;
  }
}

/** Resolves when so many acquisitions have found their lock contended from now on. */
export async function untilContended(waiters: number): Promise<void> {
  if (waiters === 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  let queued = 0;
  const count = (): void => {
    queued += 1;
    if (queued === waiters) resolve();
  };
  subscribe('locks:contended', count);
  await promise;
  unsubscribe('locks:contended', count);
}

async function grown(grow: () => Promise<unknown>): Promise<Grown> {
  const before = heapInUse();
  const histogram = monitorEventLoopDelay({ resolution: LOOK_MS });
  histogram.enable();
  const from = performance.now();
  await grow();
  const elapsedMs = performance.now() - from;
  histogram.disable();
  const loopDelayMs = Math.max(0, histogram.max / 1e6 - LOOK_MS);
  return { elapsedMs, loopDelayMs, heapBytes: heapInUse() - before };
}

function* numbered(prefix: string, count: number): Generator<string> {
  for (let index = 0; index < count; index += 1) yield `${prefix}:${index}`;
}

export function heapInUse(): number {
  if (globalThis.gc === undefined) throw new Error('Start this process with --expose-gc.');
  for (let pass = 0; pass < 4; pass += 1) globalThis.gc();
  return process.memoryUsage().heapUsed;
}

export async function inLanes<T>(
  items: Iterable<T>,
  each: (item: T) => Promise<unknown>,
  lanes = LANES,
): Promise<void> {
  const shared = items[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = shared.next(); next.done !== true; next = shared.next()) await each(next.value);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
