import { randomUUID } from 'node:crypto';
import { refusedLogin } from './login-watch.ts';
import type { RedisPort } from './port.ts';
import { ShardChannels } from './shard-channels.ts';

const RETRY_MS = 5000;

interface ChannelEvents {
  message(text: string): void;
  /** Called when the channel with this reply address is listened to, for the first time or again. */
  listening(replyAddress: string): void;
  /** Called when waiters may need another channel. */
  changed(): void;
}

/**
 * The channel of a backend, opened at the first contention; in a cluster that has sharded channels one for each master.
 * Waiting works without it, at the pace of the checks: a subscription that fails is tried again later and is never an error.
 */
export class Subscription {
  readonly #channel: string;
  /** The reply address of waiters that get no messages. */
  readonly silent: string;
  /**
   * The address for messages of grants to this process: `=` publish, and without a listener the waiter is gone; `~` publish,
   * but the number of listeners means nothing (in a cluster it is local); `!` do not publish. See {@link replyAddressOf} for
   * `^`.
   */
  replyAddress: string;
  #isOpen = false;
  readonly #port: RedisPort;
  readonly #events: ChannelEvents;
  /** The sharded channels; only in a cluster. */
  readonly #shards: ShardChannels | undefined;
  /** Whether sharded channels are used: until a server refuses them, for its version or for a missing right of the user. */
  #isSharded: boolean;
  #opening = false;
  #retryAt = 0;
  #isWarned = false;

  constructor(port: RedisPort, prefix: string, events: ChannelEvents) {
    // Without a prefix, the channel is named as the token keys are.
    this.#channel = `${prefix || 'locks:'}ch:${randomUUID().replaceAll('-', '')}`;
    this.silent = `!${this.#channel}`;
    this.replyAddress = this.silent;
    this.#port = port;
    this.#events = events;
    this.#isSharded = port.cluster && port.subscribeAt !== undefined;
    if (!this.#isSharded) return;
    this.#shards = new ShardChannels(port, this.#channel, {
      ...events,
      lost: events.changed,
      refused: () => {
        this.#isSharded = false;
        events.changed();
      },
      failed: (error) => this.#warn(error),
    });
  }

  /** The reply address for waiters of a slot: `^`, publish to the sharded channel, and without a listener the waiter is gone. */
  replyAddressOf(slot: number): string {
    return this.#isSharded ? (this.#shards?.replyAddressOf(slot) ?? this.silent) : this.replyAddress;
  }

  /** Each reply address that a waiter of this process may have in a queue. */
  replyAddresses(): ReadonlySet<string> {
    return new Set([this.replyAddress, this.silent, ...(this.#shards?.all() ?? [])]);
  }

  /** Opens the channel for waiters of a slot, unless it is open. */
  open(slot: number): void {
    if (this.#port.isPolled) return;
    if (this.#isSharded) return this.#shards?.open(slot);
    if (this.#isOpen || this.#opening || performance.now() < this.#retryAt) return;
    this.#opening = true;
    const { message } = this.#events;
    const listening = () => this.#events.listening(this.replyAddress);
    this.#port.subscribe(this.#channel, { message, restored: listening }).then(
      () => {
        this.#isOpen = true;
        this.replyAddress = `${this.#port.cluster ? '~' : '='}${this.#channel}`;
        this.#opening = false;
        listening();
      },
      (error: unknown) => {
        this.#warn(error);
        this.#opening = false;
        this.#retryAt = performance.now() + RETRY_MS;
      },
    );
  }

  /** Warns once: waiting works without the channel, only later. */
  #warn(error: unknown): void {
    const refusal = refusedLogin(error);
    if (this.#isWarned || (refusal === undefined && !String(error).includes('NOPERM'))) return;
    this.#isWarned = true;
    if (refusal !== undefined) return process.emitWarning(`Late hand-offs: ${refusal.message}`);
    process.emitWarning(
      `Late hand-offs: ${String(error)} Grant +subscribe &${this.#channel.slice(0, -32)}*`,
      {
        code: 'LOCKS_REDIS_CHANNEL',
      },
    );
  }
}
