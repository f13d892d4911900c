import { randomUUID } from 'node:crypto';
import type { RedisPort, SubscriptionEvents } from './port.ts';

const longestPatienceMs = 1000;
const retryMs = 5000;

/**
 * The one channel of a backend, opened at the first contention. Waiting works without it, at the pace of the checks:
 * so a subscription that cannot be had is tried again now and then, and never an error.
 */
export class Subscription {
  readonly channel: string;
  readonly #port: RedisPort;
  readonly #events: SubscriptionEvents;
  #opening: Promise<void> | undefined;
  #live = false;
  #retryAt = 0;

  constructor(port: RedisPort, prefix: string, events: SubscriptionEvents) {
    this.channel = `${prefix}ch:${randomUUID().replaceAll('-', '')}`;
    this.#port = port;
    this.#events = events;
  }

  /**
   * How others tell this process of a grant: `=` publish, and nobody listening means that the waiter is gone;
   * `~` publish, but the number of listeners means nothing (in a cluster it is local); `!` do not publish.
   */
  get notify(): string {
    if (!this.#live) return `!${this.channel}`;
    return this.#port.cluster ? `~${this.channel}` : `=${this.channel}`;
  }

  get live(): boolean {
    return this.#live;
  }

  /** Ends when the channel is listened to, cannot be had, or takes longer than `patienceMs`. */
  async open(patienceMs = longestPatienceMs): Promise<void> {
    if (this.#live) return;
    if (this.#opening === undefined) {
      if (performance.now() < this.#retryAt) return;
      this.#opening = this.#port.subscribe(this.channel, this.#events).then(
        () => {
          this.#live = true;
        },
        () => {
          this.#opening = undefined;
          this.#retryAt = performance.now() + retryMs;
        },
      );
    }
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, Math.min(patienceMs, longestPatienceMs)));
    });
    await Promise.race([this.#opening, patience]);
    clearTimeout(timer);
  }
}
