import type { StoredRecord } from './record-store.ts';
import type { StoreClock } from './store-clock.ts';

/** How many clients are remembered. */
const MAX_CLIENTS = 10_000;

/** What this process has seen of the heartbeat of another client. */
interface Seen {
  /** The version of its record; `undefined`: there was none. */
  readonly version: StoredRecord['version'] | undefined;
  /** Since when the version is the same, and when it was last read, on `performance.now()`. */
  readonly since: number;
  readonly readAt: number;
  readonly isDead: boolean;
}

/** The value of a client's record. */
export interface Heartbeat {
  /** Another number in each. */
  readonly beat: number;
  /** The time of the store's clock by which it is over, where the client knew that clock. */
  readonly end?: number | undefined;
}

/**
 * The clients that wait in queues which this process reads. A client is dead that has no record: the heartbeat comes before the
 * first entry in a queue. It is dead too when its record was read for `aliveMs` and did not change, or has a time that is long ago
 * by the store's clock.
 */
export class Heartbeats {
  readonly #aliveMs: number;
  readonly #clock: StoreClock;
  readonly #seen = new Map<string, Seen>();

  constructor(aliveMs: number, clock: StoreClock) {
    this.#aliveMs = aliveMs;
    this.#clock = clock;
  }

  /** Whether a client lives, as far as is known here. */
  has(client: string): boolean {
    return this.#seen.get(client)?.isDead !== true;
  }

  /** Whether the heartbeat of a client is to be read again. */
  isDue(client: string): boolean {
    const { readAt = -Infinity } = this.#seen.get(client) ?? {};
    return performance.now() - readAt > this.#aliveMs / 4;
  }

  /** Records what was read of a client just now. */
  see(client: string, record: StoredRecord | undefined): void {
    const readAt = performance.now();
    const before = this.#seen.get(client);
    const version = record?.version;
    const since = before !== undefined && before.version === version ? before.since : readAt;
    const isDead = record === undefined || readAt - since >= this.#aliveMs || this.#isOver(record, readAt);
    this.#seen.delete(client);
    this.#seen.set(client, { version, since, readAt, isDead });
    if (this.#seen.size <= MAX_CLIENTS) return;
    const [oldest] = this.#seen.keys();
    this.#seen.delete(oldest as string);
  }

  #isOver({ value }: StoredRecord, readAt: number): boolean {
    const { end } = JSON.parse(Buffer.from(value).toString('utf8')) as Heartbeat;
    return end !== undefined && this.#clock.untilPassed(end, readAt) === 0;
  }
}
