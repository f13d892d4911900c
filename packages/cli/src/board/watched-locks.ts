import { setTimeout as sleep } from 'node:timers/promises';
import type { Holder, LockManager, ResourceState } from '@locks/core';
import { type EndedHold, EndedHolds } from './ended-holds.ts';

/** More are not read: a page with more rows helps nobody. */
export const MOST_NAMES = 1_000;

/** What the page shows. */
export interface BoardState {
  /** Milliseconds since 1970 of the last look that the store answered. */
  readonly at: number;
  readonly states: readonly Pick<ResourceState, 'resource' | 'holders' | 'waiters'>[];
  /** There are more than {@link MOST_NAMES} names. */
  readonly isPart: boolean;
  readonly ended: readonly EndedHold[];
  /** Why the last look failed; what is shown is older then. */
  readonly error?: string;
}

/** Looks at the locks of a store again and again, however many pages show them. */
export class WatchedLocks {
  readonly #locks: LockManager;
  readonly #prefix: string;
  readonly #ended = new EndedHolds();
  #lastLook: Promise<void> = Promise.resolve();
  #state: BoardState = { at: 0, states: [], isPart: false, ended: [] };

  constructor(locks: LockManager, prefix: string) {
    this.#locks = locks;
    this.#prefix = prefix;
  }

  get state(): BoardState {
    return this.#state;
  }

  /** @throws LockError `LOCK_UNSUPPORTED` where the store cannot list, `LOCK_BACKEND` */
  async look(): Promise<void> {
    // One after the other: an answer that is older than the one before would show holds again that have ended.
    const look = this.#lastLook.then(() => this.#lookNow());
    this.#lastLook = look.catch(() => undefined);
    await look;
  }

  async #lookNow(): Promise<void> {
    const at = Date.now();
    const states: ResourceState[] = [];
    let isPart = false;
    for await (const { resource, holders, waiters } of this.#locks.list(this.#prefix)) {
      isPart = states.length === MOST_NAMES;
      if (isPart) break;
      states.push({ resource, holders, waiters });
    }
    states.sort((a, b) => (a.resource < b.resource ? -1 : 1));
    // A name that was left out has not ended.
    if (!isPart) this.#ended.look(states, at, Date.now());
    this.#state = { at, states, isPart, ended: this.#ended.list };
  }

  /** Looks until `signal` aborts. */
  async keepLooking(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.look().catch((error: unknown) => {
        this.#state = { ...this.#state, error: (error as Error).message };
      });
    }
  }

  /** Ends a hold by force. Gives the holds that it ended. */
  async release(resource: string, acquisitionId: string): Promise<readonly Holder[]> {
    // A look that is under way may see the end before its answer is here.
    this.#ended.releasesHere(acquisitionId, true);
    const released = await this.#locks.forceRelease(resource, { acquisitionId });
    if (released.length === 0) this.#ended.releasesHere(acquisitionId, false);
    await this.look().catch(() => undefined);
    return released;
  }
}
