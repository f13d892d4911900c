import { randomUUID } from 'node:crypto';
import { refusedLogin } from './login-watch.ts';
import type { RedisPort } from './port.ts';

const RETRY_MS = 5000;

export interface ChannelEvents {
  message(text: string): void;
  /** The channel is listened to now, for the first time or again. */
  listening(): void;
}

/**
 * The one channel of a backend, opened at the first contention. Waiting works without it, at the pace of the checks: a
 * subscription that fails is tried again later and is never an error.
 */
export class Subscription {
  readonly channel: string;
  /** The `notify` of waiters that get no messages. */
  readonly silent: string;
  /**
   * How other processes notify this one of a grant: `=` publish, and without a listener the waiter is gone; `~` publish,
   * but the number of listeners means nothing (in a cluster it is local); `!` do not publish.
   */
  notify: string;
  isOpen = false;
  readonly #port: RedisPort;
  readonly #events: ChannelEvents;
  #opening = false;
  #retryAt = 0;

  constructor(port: RedisPort, prefix: string, events: ChannelEvents) {
    this.channel = `${prefix}ch:${randomUUID().replaceAll('-', '')}`;
    this.silent = `!${this.channel}`;
    this.notify = this.silent;
    this.#port = port;
    this.#events = events;
  }

  open(): void {
    if (this.isOpen || this.#opening || performance.now() < this.#retryAt) return;
    this.#opening = true;
    const { message, listening } = this.#events;
    this.#port.subscribe(this.channel, { message, restored: listening }).then(
      () => {
        this.isOpen = true;
        this.notify = `${this.#port.cluster ? '~' : '='}${this.channel}`;
        this.#opening = false;
        listening();
      },
      (error: unknown) => {
        // Warned of once: waiting works without the channel, only later.
        if (this.#retryAt === 0) this.#warn(error);
        this.#opening = false;
        this.#retryAt = performance.now() + RETRY_MS;
      },
    );
  }

  #warn(error: unknown): void {
    const refusal = refusedLogin(error);
    if (refusal !== undefined) return process.emitWarning(`Late hand-offs: ${refusal.message}`);
    if (!String(error).includes('NOPERM')) return;
    process.emitWarning(`Late hand-offs: ${String(error)} Grant +subscribe &${this.channel.slice(0, -32)}*`, {
      code: 'LOCKS_REDIS_CHANNEL',
    });
  }
}
