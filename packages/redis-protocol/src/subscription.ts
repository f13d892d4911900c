import { randomUUID } from 'node:crypto';
import type { RedisPort } from './port.ts';

const retryMs = 5000;

export interface ChannelEvents {
  message(text: string): void;
  /** It listens now, for the first time or again. */
  listening(): void;
}

/**
 * The one channel of a backend, opened at the first contention. Waiting works without it, at the pace of the checks:
 * so a subscription that cannot be had is tried again now and then, and never an error.
 */
export class Subscription {
  readonly channel: string;
  /** The `notify` of waiters that cannot be told: see {@link notify}. */
  readonly silent: string;
  readonly #port: RedisPort;
  readonly #events: ChannelEvents;
  #opening = false;
  #live = false;
  #retryAt = 0;

  constructor(port: RedisPort, prefix: string, events: ChannelEvents) {
    this.channel = `${prefix}ch:${randomUUID().replaceAll('-', '')}`;
    this.silent = `!${this.channel}`;
    this.#port = port;
    this.#events = events;
  }

  /**
   * How others tell this process of a grant: `=` publish, and nobody listening means that the waiter is gone;
   * `~` publish, but the number of listeners means nothing (in a cluster it is local); `!` do not publish.
   */
  get notify(): string {
    if (!this.#live) return this.silent;
    return this.#port.cluster ? `~${this.channel}` : `=${this.channel}`;
  }

  get live(): boolean {
    return this.#live;
  }

  open(): void {
    if (this.#live || this.#opening || performance.now() < this.#retryAt) return;
    this.#opening = true;
    const { message, listening } = this.#events;
    this.#port.subscribe(this.channel, { message, restored: listening }).then(
      () => {
        this.#live = true;
        this.#opening = false;
        listening();
      },
      () => {
        this.#opening = false;
        this.#retryAt = performance.now() + retryMs;
      },
    );
  }
}
