import {
  clockOf,
  escapeKey,
  type KeyAlphabet,
  mayStartWith,
  type RecordChange,
  type RecordClock,
  type RecordsRead,
  type RecordStore,
  type RecordWrite,
  type RecordWritten,
  type RequestLimit,
  type StoredRecord,
} from '@locks/record-protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { Bucket } from './bucket.ts';
import { JetStream, type StoredMessage, type StreamInfo } from './jetstream.ts';
import {
  hasNoResponders,
  isPassing,
  isWrongLastSequence,
  JetStreamError,
  NO_MESSAGE,
  STREAM_NOT_FOUND,
} from './jetstream-error.ts';
import { Link } from './link.ts';
import type { CheckedNatsOptions } from './options.ts';
import { WAKES, RecordSubscriptions } from './record-subscriptions.ts';

/** The characters of a key of a bucket, without the dot, which would part it. A line of the protocol has at most 4 096 bytes. */
const ALPHABET: KeyAlphabet = {
  plain: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/',
  escape: '=',
  maxLength: 1_600,
};
/** The server tells the time in nanoseconds, of which a whole number of milliseconds is read. */
const STEP_MS = 1;
/** The bytes of the largest message that are kept for its headers. */
const HEADER_BYTES = 1_024;
const MOST_BYTES = 1_048_576;
/** How long an idle record stays, where the bucket lets messages expire: more than the day that it must. */
const IDLE = { 'Nats-TTL': '25h' };
const DELETED = { 'KV-Operation': 'DEL' };
/** A key whose last message is one of these has no record: a deletion by a client, or by the server. */
const MARKER = /^(?:KV-Operation: (?:DEL|PURGE)|Nats-Marker-Reason:)/m;
const BATCH = 100;

/** Records as keys of a bucket: the version is the sequence number of the message in the bucket's stream, which never goes back. */
export class NatsStore implements RecordStore {
  readonly name = 'nats';
  readonly clock: RecordClock;
  readonly tellsWhom = true;
  readonly #connection: NatsConnection;
  readonly #link: Link;
  readonly #jetStream: JetStream;
  readonly #bucket: Bucket;
  readonly #subscriptions: RecordSubscriptions;
  #bucketBytes = MOST_BYTES;

  constructor(options: CheckedNatsOptions) {
    this.clock = clockOf(options, STEP_MS);
    this.#connection = options.connection;
    this.#link = new Link(options.connection);
    this.#jetStream = new JetStream(this.#link);
    this.#bucket = new Bucket(this.#jetStream, options);
    this.#subscriptions = new RecordSubscriptions(options.connection, async (key) =>
      this.#bucket.toldOn(key, (await this.#open()).config),
    );
  }

  get maxValueBytes(): number {
    const { max_payload: payload = MOST_BYTES } = this.#connection.info ?? {};
    return Math.min(payload - HEADER_BYTES, this.#bucketBytes);
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const { now } = await this.#open();
    const messages = await Promise.all(keys.map((key) => this.#last(escapeKey(key, ALPHABET), limit)));
    return { records: messages.map(recordOf), ...(now !== undefined && { now }) };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const { config, now } = await this.#open();
    const { allow_msg_ttl: canExpire = false } = config;
    const { value, ifVersion, isIdle, wakes = [] } = write;
    const key = escapeKey(write.key, ALPHABET);
    const expires = canExpire && (isIdle || value === undefined);
    const headers = {
      ...(expires && IDLE),
      ...(value === undefined && DELETED),
      [WAKES]: wakes.join(' '),
    };
    const put = async (last: number): Promise<RecordWritten> => {
      try {
        const payload = value ?? new Uint8Array();
        const subject = this.#bucket.subjectOf(key);
        const version = await this.#jetStream.publish(subject, payload, last, headers, limit.timeoutMs);
        return { status: 'written', version, ...(now !== undefined && { now }) };
      } catch (error) {
        if (isWrongLastSequence(error)) return { status: 'conflict' };
        throw this.#noticed(error);
      }
    };
    const written = await put(Number(ifVersion ?? 0));
    if (written.status === 'written' || ifVersion !== undefined) return written;
    // A deleted record is a message too.
    const last = await this.#last(key, limit);
    const present = recordOf(last);
    if (present !== undefined) return { status: 'conflict', present };
    return last === undefined ? written : await put(last.seq);
  }

  askTime(): Promise<number | undefined> {
    return this.#bucket.askTime();
  }

  watch(key: string, changed: (change: RecordChange) => void): () => void {
    return this.#subscriptions.watch(escapeKey(key, ALPHABET), changed);
  }

  async *list(prefix: string, limit: RequestLimit): AsyncGenerator<StoredRecord> {
    await this.#open();
    const filter = this.#bucket.subjectOf('');
    for (let offset = 0, total = 1; offset < total; ) {
      const body = { subjects_filter: `${filter}>`, offset };
      const info = await this.#jetStream.api<StreamInfo>(
        `STREAM.INFO.${this.#bucket.stream}`,
        body,
        limit.timeoutMs,
      );
      const keys = Object.keys(info.state?.subjects ?? {}).map((subject) => subject.slice(filter.length));
      offset += keys.length;
      total = keys.length === 0 ? 0 : (info.total ?? 0);
      const wanted = keys.filter((key) => mayStartWith(key, prefix, ALPHABET));
      while (wanted.length > 0) {
        const messages = await Promise.all(wanted.splice(0, BATCH).map((key) => this.#last(key, limit)));
        yield* messages.map(recordOf).filter((record) => record !== undefined);
      }
    }
  }

  async prepare(): Promise<void> {
    await this.#bucket.prepare();
  }

  isRetryable(error: unknown): boolean {
    return isPassing(error);
  }

  isClientClosed(): boolean {
    return this.#connection.isClosed();
  }

  connectionError(): unknown {
    return this.#link.error;
  }

  async close(): Promise<void> {
    this.#subscriptions.close();
    this.#link.close();
  }

  async #open() {
    const opened = await this.#bucket.open();
    const { max_msg_size: size = -1 } = opened.config;
    if (size >= 0) this.#bucketBytes = size - HEADER_BYTES;
    return opened;
  }

  /** The last message of a key, from the leader of the stream: a direct read may come from a replica that is behind. */
  async #last(key: string, limit: RequestLimit): Promise<StoredMessage | undefined> {
    const query = { last_by_subj: this.#bucket.subjectOf(key) };
    const call = `STREAM.MSG.GET.${this.#bucket.stream}`;
    try {
      return (await this.#jetStream.api<{ message: StoredMessage }>(call, query, limit.timeoutMs)).message;
    } catch (error) {
      if (error instanceof JetStreamError && error.code === NO_MESSAGE) return undefined;
      throw this.#noticed(error);
    }
  }

  /** A bucket that was deleted is looked for, and made, at the next call. */
  #noticed(error: unknown): unknown {
    const isGone = error instanceof JetStreamError && error.code === STREAM_NOT_FOUND;
    if (isGone || hasNoResponders(error)) this.#bucket.forget();
    return error;
  }
}

function recordOf(message: StoredMessage | undefined): StoredRecord | undefined {
  if (message === undefined) return undefined;
  const { seq, data = '', hdrs = '' } = message;
  if (MARKER.test(Buffer.from(hdrs, 'base64').toString('latin1'))) return undefined;
  return { value: Buffer.from(data, 'base64'), version: seq };
}
