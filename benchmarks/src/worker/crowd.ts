import { setTimeout as delay } from 'node:timers/promises';
import { isLockError, type LockManager } from '@locks/core';
import { contenderNamed } from '../contenders/all.ts';
import type { OpenLocks } from '../contenders/contender.ts';
import type { CrowdCounts, CrowdTask } from './methods.ts';

const FOREVER = { waitMs: Number.POSITIVE_INFINITY };

/**
 * Many lock managers of one process, each with a client of its own, which want one lock again and again: to the server, as many
 * processes. Each of them counts as one waiter.
 */
export class Crowd {
  readonly #name: string;
  readonly #managers: readonly OpenLocks[];
  #entered = 0;
  #failedReleases = 0;
  #failedAcquires = 0;

  private constructor(name: string, managers: readonly OpenLocks[]) {
    this.#name = name;
    this.#managers = managers;
  }

  static async open({ store, contender, url, ttlMs, clients, name }: CrowdTask): Promise<Crowd> {
    const { openLocks } = await contenderNamed(store, contender);
    if (openLocks === undefined) throw new Error(`${contender} is not ours.`);
    const managers: OpenLocks[] = [];
    for (let index = 0; index < clients; index += 1) {
      const opened = await openLocks(url, ttlMs);
      managers.push(opened);
      // From here on it is connected.
      await opened.ping();
    }
    return new Crowd(name, managers);
  }

  /** Each manager enters and leaves, `turns` times, while the process lasts. */
  begin(turns: number): void {
    for (const { locks } of this.#managers) void this.#loop(locks, turns);
  }

  get counts(): CrowdCounts {
    return {
      entered: this.#entered,
      failedReleases: this.#failedReleases,
      failedAcquires: this.#failedAcquires,
    };
  }

  /** The first manager acquires the lock, and keeps it. */
  async hold(): Promise<void> {
    await this.#managers[0]?.locks.lock(this.#name).acquire(FOREVER);
  }

  async #loop(locks: LockManager, turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) {
      try {
        const lease = await locks.lock(this.#name).acquire(FOREVER);
        this.#entered += 1;
        await lease.release().catch((error: unknown) => {
          if (!isLockError(error, 'LOCK_CLOSED')) this.#failedReleases += 1;
        });
      } catch (error) {
        if (isLockError(error, 'LOCK_CLOSED')) return;
        this.#failedAcquires += 1;
        await delay(100);
      }
    }
  }
}
