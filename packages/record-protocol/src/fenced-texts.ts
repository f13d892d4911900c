import { setTimeout as sleep } from 'node:timers/promises';
import { LockError } from '@locks/core';
import { mustBe, NoAnswerError } from '@locks/core/backend';
import { freshVersion } from './fresh-version.ts';
import { MalformedRecordError, mustHold } from './malformed-record.ts';
import type { RecordStore, StoredRecord } from './record-store.ts';
import { StoreClock } from './store-clock.ts';
import { StoreRequests } from './store-requests.ts';
import { ownLimit, type TimeLimit } from './time-limit.ts';

/** What is used of a {@link RecordStore} for texts: the locks may be kept in another way. */
export type TextRecordStore = Pick<
  RecordStore,
  'name' | 'maxValueBytes' | 'clock' | 'askTime' | 'read' | 'write' | 'connectionError'
>;

/** A text with the fencing token of its writer. */
export interface FencedText {
  readonly text: string;
  readonly token: bigint;
  /** The time of the store at which it ends, in milliseconds since 1970; `undefined`: it never ends. */
  readonly endsAt: number | undefined;
}

/** The first line of a value. */
interface Head {
  /** The id of the write: a store may give a value that it has had before the version that it had. */
  readonly id: number;
  readonly version: number;
  readonly token: string;
  readonly endsAt: number | undefined;
}

const VERSION = 1;
const LIMIT_MS = 10_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;
const NEW_LINE = '\n';

/** Texts of one kind under keys of their own. A write with a lower token than that of the text that is there is refused. */
export class FencedTexts {
  readonly #store: TextRecordStore;
  readonly #start: string;
  readonly #what: string;
  readonly #requests: StoreRequests;
  readonly #clock: StoreClock;

  /**
   * @param start - what all keys start with: it ends with a slash, which no escaped name has
   * @param what - the function that the user called, for the message of an error
   */
  constructor(store: TextRecordStore, start: string, what: string) {
    this.#store = store;
    this.#start = start;
    this.#what = what;
    this.#clock = new StoreClock(store.clock, store.name);
    this.#requests = new StoreRequests(store, this.#clock);
  }

  /** The store's time in milliseconds, or some time before it; that of this machine where the store has told none. */
  get now(): number {
    const told = this.#clock.lowerAt(performance.now());
    return told === undefined ? Date.now() : told / 1_000;
  }

  /** Reads a text, with the time that the store tells in its answer. */
  async read(name: string): Promise<{ readonly found: FencedText | undefined; readonly now?: number }> {
    const { record, ...time } = await this.#read(this.#keyOf(name), ownLimit(LIMIT_MS));
    return { found: record && this.#decode(name, record), ...time };
  }

  /**
   * Writes a text unless the present one has a higher token, and tells whether it did.
   *
   * @param make - the text, made once the store has told its time
   * @param isIdle - whether the store may delete it after a day
   */
  async write(name: string, make: () => FencedText, isIdle: boolean): Promise<boolean> {
    const key = this.#keyOf(name);
    const limit = ownLimit(LIMIT_MS);
    let { record: present } = await this.#read(key, limit);
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const written = make();
      if (present !== undefined && this.#decode(name, present).token > written.token) return false;
      const value = this.#encode(name, written);
      const outcome = await this.#requests.write({ key, value, ifVersion: present?.version, isIdle }, limit);
      if (outcome.status === 'written') return true;
      if (limit.now() > limit.deadline)
        throw new NoAnswerError(`${this.#what}: others wrote ${JSON.stringify(key)} before each try`);
      // Two writers that meet once would meet again without a pause of another length for each.
      await sleep(pauseMs * (0.5 + Math.random()));
      present =
        outcome.present === 'absent' ? undefined : (outcome.present ?? (await this.#read(key, limit)).record);
    }
  }

  async #read(
    key: string,
    limit: TimeLimit,
  ): Promise<{ readonly record: StoredRecord | undefined; readonly now?: number }> {
    const { records, now = await this.#requests.askTime(limit) } = await this.#requests.read([key], limit);
    return { record: records[0], ...(now !== undefined && { now }) };
  }

  #encode(name: string, { text, token, endsAt }: FencedText): Buffer {
    const head: Head = { id: freshVersion(), version: VERSION, token: String(token), endsAt };
    const value = Buffer.from(`${JSON.stringify(head)}${NEW_LINE}${text}`);
    const most = this.#store.maxValueBytes;
    if (value.length <= most) return value;
    throw mustBe(
      `${this.#what}: what is kept of ${JSON.stringify(name)}`,
      `at most ${most} bytes`,
      value.length,
    );
  }

  /** @throws LockError `LOCK_UNSUPPORTED` for a text of a newer version; MalformedRecordError for anything else */
  #decode(name: string, { value }: StoredRecord): FencedText {
    const all = Buffer.from(value.buffer, value.byteOffset, value.length).toString();
    const end = all.indexOf(NEW_LINE);
    try {
      mustHold(end > 0, 'it does not begin with a line of JSON');
      const { version, token, endsAt } = JSON.parse(all.slice(0, end)) as Head;
      if (version > VERSION) throw this.#newer(name, version);
      mustHold(version === VERSION && typeof token === 'string', 'its first line has no token');
      return { text: all.slice(end + 1), token: BigInt(token), endsAt };
    } catch (error) {
      if (error instanceof LockError) throw error;
      throw new MalformedRecordError(`${this.#what}: the record ${JSON.stringify(this.#keyOf(name))}`, error);
    }
  }

  #newer(name: string, version: number): LockError {
    const says = `${this.#what}: the record of ${name} has version ${version}, and this process knows ${VERSION}: upgrade @locks/record-protocol.`;
    return new LockError('LOCK_UNSUPPORTED', says, { lockName: name });
  }

  /** A name has no slash here, so that no key is that of a lock under another prefix: those have `lock/` before their name. */
  #keyOf(name: string): string {
    return `${this.#start}${name.replaceAll('%', '%25').replaceAll('/', '%2F')}`;
  }
}
