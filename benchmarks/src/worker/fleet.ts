import { setTimeout as delay } from 'node:timers/promises';
import { contenderNamed } from '../contenders/all.ts';
import type { OpenLocks } from '../contenders/contender.ts';
import { heapInUse, inLanes, untilContended } from './many-locks.ts';
import type { FleetTask } from './methods.ts';

const OPEN_AT_ONCE = 16;
/** A waiter may open a connection: a thousand at once would keep a server from its renewals. */
const PACE_MS = 1_000;
const WAIT_MS = 60_000;

/** Many lock managers of one process, each with a client of its own: to the server, as many processes. */
export class Fleet {
  readonly #task: FleetTask;
  readonly #managers: readonly OpenLocks[];
  /** Bytes of the heap that each manager and its client use. */
  readonly heapBytesEach: number;
  /** No lease has ended: no wait for one has. */
  isIntact = true;

  private constructor(task: FleetTask, managers: readonly OpenLocks[], heapBytesEach: number) {
    this.#task = task;
    this.#managers = managers;
    this.heapBytesEach = heapBytesEach;
  }

  /** Each manager acquires and releases once: from then on it is connected. */
  static async open(task: FleetTask): Promise<Fleet> {
    const { openLocks } = await contenderNamed(task.store, task.contender);
    if (openLocks === undefined) throw new Error(`${task.contender} is not ours.`);
    const managers: OpenLocks[] = [];
    const before = heapInUse();
    const numbers = Array.from({ length: task.count }, (_, index) => task.first + index);
    await inLanes(
      numbers,
      async (number) => {
        const opened = await openLocks(task.url, task.ttlMs);
        managers.push(opened);
        const lease = await opened.locks.lock(nameOf(number)).acquire({ waitMs: WAIT_MS });
        await lease.release();
      },
      OPEN_AT_ONCE,
    );
    return new Fleet(task, managers, (heapInUse() - before) / task.count);
  }

  /** Each manager acquires a lock, and keeps it. */
  async hold(): Promise<void> {
    await inLanes(
      this.#managers.entries(),
      ([index, { locks }]) => locks.lock(nameOf(this.#task.first + index)).acquire({ waitMs: WAIT_MS }),
      OPEN_AT_ONCE,
    );
  }

  /** Each manager waits for the lock of the next one, a few after the others; resolves when all of them queue, or one has entered. */
  async wait(): Promise<void> {
    const { promise: entered, resolve, reject } = Promise.withResolvers<void>();
    const enter = (): void => {
      this.isIntact = false;
      resolve();
    };
    for (let from = 0; from < this.#managers.length && this.isIntact; from += OPEN_AT_ONCE) {
      const some = this.#managers.slice(from, from + OPEN_AT_ONCE);
      const queued = untilContended(some.length);
      for (const [index, { locks }] of some.entries()) {
        const next = nameOf((this.#task.first + from + index + 1) % this.#task.total);
        locks.lock(next).acquire({ waitMs: Number.POSITIVE_INFINITY }).then(enter, reject);
      }
      await Promise.race([queued.then(() => delay(PACE_MS)), entered]);
    }
  }
}

function nameOf(number: number): string {
  return `sizing:${number}`;
}
