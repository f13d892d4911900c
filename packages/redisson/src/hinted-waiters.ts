import { type AcquireRequest, type Call, type LocalWaiter, LocalWaiters } from '@locks/core/backend';
import type { RedisPort } from '@locks/redis-protocol';
import type { RedissonKeys } from './keys.ts';
import { LockChannels } from './lock-channels.ts';
import type { Sharding } from './publish-command.ts';

/** How long a waiter without an answer is kept. Far longer than an attempt takes: only those that core gave up stay so long. */
const SILENT_MS = 10_000;

interface RedissonWaiter extends LocalWaiter {
  /** The lock may have been freed since the attempt was sent, and the waiter does not wait yet. */
  mayBeFree: boolean;
}

/**
 * The waiters of this process. A waiter is known from before its attempt is sent, so that a message which overtakes the answer is not
 * lost, until its wait ends: its next attempt has another id.
 */
export class HintedWaiters {
  readonly #waiters: LocalWaiters<RedissonWaiter>;
  readonly #channels: LockChannels;

  constructor(port: RedisPort, sharding: Sharding, maxPollMs: number) {
    this.#channels = new LockChannels(port, sharding, {
      mayBeFree: (resource) => this.#wake(resource),
      isNeeded: (resource) => this.#waiters.countOf(resource) > 0,
    });
    this.#waiters = new LocalWaiters({
      make: (waiter) => ({ ...waiter, mayBeFree: false }),
      pollEveryMs: maxPollMs,
      // Core gave up on these between their attempt and their wait.
      poll: () => {
        for (const { request } of this.#waiters.silentFor(SILENT_MS)) this.#waiters.remove(request);
      },
      emptied: (resource) => this.#channels.leave(resource),
    });
  }

  /** Called before an attempt is sent that may wait. */
  register(request: AcquireRequest, call: Call): void {
    this.#waiters.register(request, call);
  }

  /** Called when the attempt was answered with "contended". */
  onContended({ acquisitionId, resource }: AcquireRequest, keys: RedissonKeys): void {
    if (this.#waiters.get(acquisitionId) !== undefined) this.#channels.listen(resource, keys);
  }

  remove(request: AcquireRequest): void {
    this.#waiters.remove(request);
  }

  /** Resolves with a hint; never with a grant. */
  async awaitTurn(request: AcquireRequest, call: Call): Promise<undefined> {
    const waiter = this.#waiters.get(request.acquisitionId);
    if (waiter?.mayBeFree === false) await this.#waiters.awaitTurn(request, call);
    this.#waiters.remove(request);
  }

  /**
   * Wakes waiters of this process after a release of its own, where they do not listen. Else they hear the message, as those of all
   * processes do at the same time: no process is ahead.
   */
  released(resource: string): void {
    if (!this.#channels.isListening(resource)) this.#wake(resource);
  }

  close(): void {
    this.#channels.close();
    this.#waiters.close();
  }

  #wake(resource: string): void {
    for (const waiter of this.#waiters.of(resource)) {
      if (!waiter.wait.end()) waiter.mayBeFree = true;
    }
  }
}
