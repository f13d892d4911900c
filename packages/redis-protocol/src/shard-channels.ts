import type { RedisPort } from './port.ts';
import { tagOf } from './slot.ts';

/** The pause between two attempts to listen at a master. */
const RETRY_MS = 500;

interface ShardEvents {
  message(text: string): void;
  /** Called when the channel with this reply address is listened to. */
  listening(replyAddress: string): void;
  /** Called when a channel is listened to no longer: its connection was lost, or its slot went to another master. */
  lost(): void;
  /** Called when the server has no sharded channels, or this user has no right to them. */
  refused(): void;
  failed(error: unknown): void;
}

/**
 * The channels of a backend in a cluster: one for each master that waiters of this process have needed so far. The name ends
 * with the hash tag of one of the master's slots, so that scripts of this master publish to it without a message to other
 * nodes.
 */
export class ShardChannels {
  /** The reply address of the channel that is listened to at a master, by its address. */
  readonly #open = new Map<string, string>();
  /** The time at which a master is asked again; `Infinity` while the request is in flight. */
  readonly #retryAt = new Map<string, number>();
  /** The slots of all channels so far, each with the master that knew last that the slot is not its own. */
  readonly #slots = new Map<number, string | undefined>();
  #opensLater = false;
  readonly #port: RedisPort;
  readonly #name: string;
  readonly #events: ShardEvents;

  constructor(port: RedisPort, name: string, events: ShardEvents) {
    this.#port = port;
    this.#name = name;
    this.#events = events;
  }

  /** The reply address of waiters of a slot; `undefined`: nobody listens at its master yet. */
  replyAddressOf(slot: number): string | undefined {
    return this.#open.get(this.#port.masterOf?.(slot) as string);
  }

  /** The reply address of every channel that waiters may have in a queue. */
  all(): string[] {
    return [...this.#slots.keys()].map((slot) => this.#replyAddress(slot));
  }

  /** Listens at the master of a slot, unless it does so already. */
  open(slot: number): void {
    const master = this.#port.masterOf?.(slot);
    if (master === undefined || this.#open.has(master)) return;
    const waitMs = (this.#retryAt.get(master) ?? 0) - performance.now();
    if (waitMs > 0) return this.#openLater();
    this.#retryAt.set(master, Number.POSITIVE_INFINITY);
    // A name that was used at this master before is taken again, so that the number of names does not grow with each lost
    // connection.
    const known = [...this.#slots].find(
      ([at, not]) => not !== master && this.#port.masterOf?.(at) === master,
    );
    const own = known?.[0] ?? slot;
    const replyAddress = this.#replyAddress(own);
    const { message, listening, lost, refused, failed } = this.#events;
    const events = {
      message,
      restored: () => listening(replyAddress),
      lost: () => {
        this.#open.delete(master);
        lost();
      },
    };
    this.#port.subscribeAt?.(master, replyAddress.slice(1), events).then(
      () => {
        // A connection that is lost again and again is opened at this pace.
        this.#retryAt.set(master, performance.now() + RETRY_MS);
        this.#open.set(master, replyAddress);
        this.#slots.set(own, undefined);
        listening(replyAddress);
      },
      (error: unknown) => {
        this.#retryAt.set(master, performance.now() + RETRY_MS);
        this.#openLater();
        if (/unknown command|NOPERM/i.test(String(error))) return refused();
        failed(error);
        if (known === undefined || !String(error).includes('MOVED')) return;
        // The client does not know yet that the slot of this name has moved; the waiter's own slot may not have moved.
        this.#slots.set(own, master);
        this.#retryAt.delete(master);
        this.open(slot);
      },
    );
  }

  /** Reports the loss of channels after a pause: acquisitions that still wait then open the missing ones. */
  #openLater(): void {
    if (this.#opensLater) return;
    this.#opensLater = true;
    // A timer may be early by a fraction of a millisecond.
    setTimeout(() => {
      this.#opensLater = false;
      this.#events.lost();
    }, RETRY_MS + 1).unref();
  }

  #replyAddress(slot: number): string {
    return `^${this.#name}{${tagOf(slot)}}`;
  }
}
