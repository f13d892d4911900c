import {
  escapeKey,
  type KeyAlphabet,
  mayStartWith,
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

/** The characters of a key of a bucket, without the dot, which would part it. A line of the protocol has at most 4 096 bytes. */
const ALPHABET: KeyAlphabet = {
  plain: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/',
  escape: '=',
  maxLength: 1_600,
};
/** Of the largest message, for the headers. */
const HEADER_BYTES = 1_024;
const MOST_BYTES = 1_048_576;
/** How long an idle record stays, where the bucket lets messages expire: more than the day that it must. */
const IDLE = { 'Nats-TTL': '25h' };
const DELETED = { 'KV-Operation': 'DEL' };
/** A key whose last message is one of these has no record: a deletion by a client, or by the server. */
const MARKER = /^(?:KV-Operation: (?:DEL|PURGE)|Nats-Marker-Reason:)/m;
/** A change that is told before it was stored is told again after this time, in milliseconds. */
const TOLD_AGAIN_MS = 20;
const BATCH = 100;

/** Records as keys of a bucket: the version is the sequence number of the message in the bucket's stream, which never goes back. */
export class NatsStore implements RecordStore {
  readonly name = 'nats';
  readonly #connection: NatsConnection;
  readonly #link: Link;
  readonly #jetStream: JetStream;
  readonly #bucket: Bucket;
  readonly #stops = new Set<() => void>();
  #bucketBytes = MOST_BYTES;

  constructor(options: CheckedNatsOptions) {
    this.#connection = options.connection;
    this.#link = new Link(options.connection);
    this.#jetStream = new JetStream(this.#link);
    this.#bucket = new Bucket(this.#jetStream, options);
  }

  get maxValueBytes(): number {
    const { max_payload: payload = MOST_BYTES } = this.#connection.info ?? {};
    return Math.min(payload - HEADER_BYTES, this.#bucketBytes);
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    await this.#open();
    const messages = await Promise.all(keys.map((key) => this.#last(escapeKey(key, ALPHABET), limit)));
    return { records: messages.map(recordOf) };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const { allow_msg_ttl: canExpire = false } = await this.#open();
    const { value, ifVersion, isIdle } = write;
    const key = escapeKey(write.key, ALPHABET);
    const expires = canExpire && (isIdle || value === undefined);
    const headers = { ...(expires && IDLE), ...(value === undefined && DELETED) };
    const put = async (last: number): Promise<RecordWritten> => {
      try {
        const payload = value ?? new Uint8Array();
        const subject = this.#bucket.subjectOf(key);
        const version = await this.#jetStream.publish(subject, payload, last, headers, limit.timeoutMs);
        return { status: 'written', version };
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

  watch(key: string, changed: () => void): () => void {
    let isOver = false;
    let end = (): void => {};
    const stop = (): void => {
      isOver = true;
      this.#stops.delete(stop);
      end();
    };
    const subscribe = async (): Promise<void> => {
      const { subject, isAfter } = this.#bucket.toldOn(escapeKey(key, ALPHABET), await this.#open());
      if (isOver) return;
      let again: NodeJS.Timeout | undefined;
      const told = (error: Error | null): void => {
        // Without the permission to subscribe, polls tell.
        if (error !== null || isOver) return;
        changed();
        if (!isAfter) again = setTimeout(changed, TOLD_AGAIN_MS).unref();
      };
      const subscription = this.#connection.subscribe(subject, { callback: told });
      // A subscription that is refused rejects this.
      subscription.closed.catch(() => undefined);
      end = () => {
        clearTimeout(again);
        if (!this.#connection.isClosed()) subscription.unsubscribe();
      };
    };
    this.#stops.add(stop);
    // Where that fails, a read fails too, or polls tell.
    subscribe().catch(() => undefined);
    return stop;
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

  isRetryable(error: unknown): boolean {
    return isPassing(error);
  }

  connectionError(): unknown {
    return this.#link.error;
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#link.close();
  }

  async #open() {
    const config = await this.#bucket.open();
    const { max_msg_size: size = -1 } = config;
    if (size >= 0) this.#bucketBytes = size - HEADER_BYTES;
    return config;
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
