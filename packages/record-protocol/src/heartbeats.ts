import type { StoredRecord } from './record-store.ts';
import type { StoreClock } from './store-clock.ts';

/** How many clients are remembered. */
const MAX_CLIENTS = 10_000;
/** A client is silent after this part of the time after which it is dead: a little more than lies between two heartbeats. */
const SILENT_PART = 0.55;

/** What this process has seen of the heartbeat of another client. */
interface Seen {
  /** The version of its record; `undefined`: there was none. */
  readonly version: StoredRecord['version'] | undefined;
  /** Since when the version is the same, and when it was last asked for, on `performance.now()`. */
  readonly since: number;
  readonly readAt: number;
  /** How long the client lives without another heartbeat, in milliseconds. */
  readonly lives: number;
  readonly isDead: boolean;
}

/** The value of a client's record. */
export interface Heartbeat {
  /** Another number in each. */
  readonly beat: number;
  /** The time of the store's clock by which it is over, where the client knew that clock. */
  readonly end: number | undefined;
  /** How long the client lives without another one, in milliseconds; `undefined`: for the store's `waiterTtlMs`. */
  readonly lives: number | undefined;
}

/**
 * The clients that wait in queues which this process reads. A client is dead that has no record: the heartbeat comes before the
 * first entry in a queue. It is dead too when its record was read for as long as it says, `waiterTtlMs` by default, and did not change,
 * or has a time that is long ago by the store's clock.
 */
export class Heartbeats {
  readonly #waiterTtlMs: number;
  readonly #clock: StoreClock;
  readonly #seen = new Map<string, Seen>();

  constructor(waiterTtlMs: number, clock: StoreClock) {
    this.#waiterTtlMs = waiterTtlMs;
    this.#clock = clock;
  }

  /** Whether a client lives, as far as is known here. */
  has(client: string): boolean {
    return this.#seen.get(client)?.isDead !== true;
  }

  /** Whether a client is dead, or has missed a heartbeat and may be. */
  isSilent(client: string): boolean {
    const seen = this.#seen.get(client);
    if (seen === undefined) return false;
    return seen.isDead || seen.readAt - seen.since >= seen.lives * SILENT_PART;
  }

  /** Whether the heartbeat of a client is to be read again. */
  isDue(client: string): boolean {
    const { readAt = -Infinity } = this.#seen.get(client) ?? {};
    return performance.now() - readAt > this.#waiterTtlMs / 4;
  }

  /**
   * Records what was read of a client. It tells of the time at which it was asked for, and of no later one: the event loop may have stood still
   * before the answer was looked at.
   *
   * @param askedAt - on `performance.now()`
   */
  see(client: string, record: StoredRecord | undefined, askedAt: number): void {
    const before = this.#seen.get(client);
    const version = record?.version;
    const since = before !== undefined && before.version === version ? before.since : performance.now();
    const { end, lives = this.#waiterTtlMs } = record === undefined ? {} : heartbeatIn(record.value);
    const isOver = end !== undefined && this.#clock.untilPassed(end, askedAt) === 0;
    const isDead = record === undefined || askedAt - since >= lives || isOver;
    this.#seen.delete(client);
    this.#seen.set(client, { version, since, readAt: askedAt, lives, isDead });
    if (this.#seen.size <= MAX_CLIENTS) return;
    const [oldest] = this.#seen.keys();
    this.#seen.delete(oldest as string);
  }
}

/** What a heartbeat says. What something else has written says nothing: it is judged by its silence. */
function heartbeatIn(value: Uint8Array): Partial<Pick<Heartbeat, 'end' | 'lives'>> {
  try {
    const { end, lives } = JSON.parse(Buffer.from(value).toString('utf8')) as Heartbeat;
    return {
      ...(typeof end === 'number' && { end }),
      ...(typeof lives === 'number' && { lives }),
    };
  } catch {
    return {};
  }
}
