import { setTimeout as sleep } from 'node:timers/promises';
import type { Holder, LockManager, ResourceState } from '@locks/core';
import { WAIT_NAMES } from '@locks/core/backend';
import { type EndedHold, EndedHolds } from './ended-holds.ts';
import { type DrawnLock, waitPicture } from './wait-picture.ts';

/** Maximum number of names that are read: a page with more rows helps nobody. */
export const MOST_NAMES = 1_000;

/** The state that the page shows. */
export interface BoardState {
  /** The time of the last look that the store answered, in milliseconds since 1970. */
  readonly at: number;
  readonly states: readonly Pick<ResourceState, 'name' | 'holders' | 'waiters'>[];
  /** `true`: there are more than {@link MOST_NAMES} names. */
  readonly isPart: boolean;
  readonly ended: readonly EndedHold[];
  /** Who waits for whom. */
  readonly picture: readonly DrawnLock[];
  /** The reason why the last look failed; the state is older then. */
  readonly error?: string;
}

/** Polls the locks of a store, once for any number of pages that show them. */
export class WatchedLocks {
  readonly #locks: LockManager;
  readonly #prefix: string;
  readonly #ended = new EndedHolds();
  #lastLook: Promise<void> = Promise.resolve();
  #state: BoardState = { at: 0, states: [], isPart: false, ended: [], picture: [] };

  constructor(locks: LockManager, prefix: string) {
    this.#locks = locks;
    this.#prefix = prefix;
  }

  get state(): BoardState {
    return this.#state;
  }

  /** @throws LockError `LOCK_UNSUPPORTED` where the store cannot list, `LOCK_BACKEND` */
  async look(): Promise<void> {
    // Looks run one after the other: an answer older than the one before would show again holds that have ended.
    const look = this.#lastLook.then(() => this.#lookNow());
    this.#lastLook = look.catch(() => undefined);
    await look;
  }

  async #lookNow(): Promise<void> {
    const at = Date.now();
    const { states, isPart } = await this.#list(this.#prefix);
    states.sort((a, b) => (a.name < b.name ? -1 : 1));
    const told = states.length === 0 ? [] : (await this.#list(WAIT_NAMES)).states;
    // A partial list leaves out names whose holds have not ended.
    if (!isPart) this.#ended.look(states, at, Date.now());
    this.#state = { at, states, isPart, ended: this.#ended.list, picture: waitPicture(states, told) };
  }

  async #list(prefix: string): Promise<{ states: ResourceState[]; isPart: boolean }> {
    const states: ResourceState[] = [];
    for await (const { name, holders, waiters } of this.#locks.list(prefix)) {
      if (states.length === MOST_NAMES) return { states, isPart: true };
      states.push({ name, holders, waiters });
    }
    return { states, isPart: false };
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
  async release(name: string, acquisitionId: string): Promise<readonly Holder[]> {
    // A look in flight may see the end of the hold before this release is answered.
    this.#ended.releasesHere(acquisitionId, true);
    const released = await this.#locks.forceRelease(name, { acquisitionId });
    if (released.length === 0) this.#ended.releasesHere(acquisitionId, false);
    await this.look().catch(() => undefined);
    return released;
  }
}
