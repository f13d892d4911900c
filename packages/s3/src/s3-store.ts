import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  type PutObjectCommandOutput,
} from '@aws-sdk/client-s3';
import {
  clockOf,
  escapeKey,
  type KeyAlphabet,
  type RecordClock,
  type RecordPace,
  type RecordsRead,
  type RecordStore,
  type RecordVersion,
  type RecordWrite,
  type RecordWritten,
  type RequestLimit,
  type StoredRecord,
} from '@locks/record-protocol';
import { watchAnswerTime } from './answer-time.ts';
import { conditionsOf } from './conditions.ts';
import type { CheckedS3Options } from './options.ts';
import { ConditionsIgnoredError, explained, isRetryableS3Error, statusOf } from './s3-errors.ts';

/** Where an object is. */
interface Name {
  readonly Bucket: string;
  readonly Key: string;
}

type Command = GetObjectCommand | PutObjectCommand | DeleteObjectCommand | ListObjectsV2Command;

/** Without the slash, which some servers take for a folder. MinIO allows 255 characters between two of them. */
const ALPHABET: KeyAlphabet = {
  plain: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.',
  escape: '=',
  maxLength: 250,
};
/** What the escape of a key that is too long begins with. */
const HASHED = '==';
const MOST_BYTES = 1_048_576;
/** `Date` has whole seconds. */
const STEP_MS = 1_000;
const MIN_POLL_MS = 25;
const READS_AT_ONCE = 16;
/** The pause before a request is repeated that met another one, at first, in milliseconds. */
const CONFLICT_PAUSE_MS = 20;

/** Records as objects of a bucket: the version is the ETag. An object without content is a deleted record. */
export class S3Store implements RecordStore {
  readonly name = 's3';
  readonly maxValueBytes = MOST_BYTES;
  readonly pace: RecordPace;
  readonly clock: RecordClock;
  readonly #options: CheckedS3Options;

  constructor(options: CheckedS3Options) {
    const { maxPollMs, waiterTtlMs } = options;
    this.#options = options;
    this.pace = { minPollMs: MIN_POLL_MS, maxPollMs, waiterTtlMs };
    this.clock = clockOf(options, STEP_MS);
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const records: (StoredRecord | undefined)[] = [];
    let first: { readonly now?: number } | undefined;
    const names = keys.map((key) => this.#nameOf(key));
    for await (const { object, told } of this.#getEach(names, limit)) {
      records.push(recordOf(object));
      first ??= told;
    }
    return { records, ...first };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const { client, bucket, prefix } = this.#options;
    const { compareOnDelete } = await conditionsOf(client, bucket, prefix, limit.signal).catch(
      (error: unknown) => {
        throw explained(error, bucket);
      },
    );
    const { key, value, ifVersion } = write;
    const name = this.#nameOf(key);
    if (value === undefined && ifVersion !== undefined && compareOnDelete)
      return await this.#swap(
        () => new DeleteObjectCommand({ ...name, IfMatch: String(ifVersion) }),
        () => ifVersion,
        limit,
      );
    const written = await this.#put(name, value, ifVersion, limit);
    if (written.status === 'written' || ifVersion !== undefined) return written;
    // A deleted record may be an object too.
    const { object } = await this.#get(name, limit);
    const present = recordOf(object);
    if (present !== undefined) return { ...written, present };
    return object === undefined ? written : await this.#put(name, value, object.version, limit);
  }

  async *list(prefix: string, limit: RequestLimit): AsyncGenerator<StoredRecord> {
    const { bucket, prefix: own } = this.#options;
    const escaped = escapeKey(prefix, ALPHABET);
    const starts = new Set([escaped.startsWith(HASHED) ? HASHED : escaped, HASHED]);
    for (const start of starts) {
      let from: string | undefined;
      do {
        const command = new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: `${own}${start}`,
          ...(from !== undefined && { ContinuationToken: from }),
        });
        const { Contents: contents = [], NextContinuationToken: next } = (await this.#send(command, limit))
          .answer as ListObjectsV2CommandOutput;
        const names = contents.map(({ Key = '' }) => ({ Bucket: bucket, Key }));
        for await (const { object } of this.#getEach(names, limit)) {
          const record = recordOf(object);
          if (record !== undefined) yield record;
        }
        from = next;
      } while (from !== undefined);
    }
  }

  isRetryable(error: unknown): boolean {
    return isRetryableS3Error(error);
  }

  async close(): Promise<void> {}

  #nameOf(key: string): Name {
    const { bucket, prefix } = this.#options;
    return { Bucket: bucket, Key: `${prefix}${escapeKey(key, ALPHABET)}` };
  }

  async *#getEach(names: readonly Name[], limit: RequestLimit) {
    for (let start = 0; start < names.length; start += READS_AT_ONCE)
      yield* await Promise.all(
        names.slice(start, start + READS_AT_ONCE).map((name) => this.#get(name, limit)),
      );
  }

  async #get(name: Name, limit: RequestLimit) {
    const { answer, told, refusal } = await this.#send(new GetObjectCommand(name), limit);
    if (refusal !== undefined) return { object: undefined, told: told() };
    const { Body: body, ETag: tag } = answer as GetObjectCommandOutput;
    const bytes = (await body?.transformToByteArray()) ?? new Uint8Array();
    return { object: { bytes, version: this.#versionIn(tag) }, told: told() };
  }

  async #put(
    name: Name,
    value: Uint8Array | undefined,
    ifVersion: RecordWrite['ifVersion'],
    limit: RequestLimit,
  ): Promise<RecordWritten> {
    const condition = ifVersion === undefined ? { IfNoneMatch: '*' } : { IfMatch: String(ifVersion) };
    return await this.#swap(
      () => new PutObjectCommand({ ...name, Body: value ?? new Uint8Array(), ...condition }),
      ({ ETag: tag }) => this.#versionIn(tag),
      limit,
    );
  }

  /** Sends a write with a condition, again where S3 says that another request was there at the same time: no one has won then. */
  async #swap(
    make: () => PutObjectCommand | DeleteObjectCommand,
    versionOf: (answer: PutObjectCommandOutput) => RecordVersion,
    limit: RequestLimit,
  ): Promise<RecordWritten> {
    for (let pauseMs = CONFLICT_PAUSE_MS; ; pauseMs *= 2) {
      const { answer, told, refusal } = await this.#send(make(), limit);
      switch (refusal) {
        case undefined:
          return { status: 'written', version: versionOf(answer as PutObjectCommandOutput), ...told() };
        case 'other':
          return { status: 'conflict', ...told() };
        case 'absent':
          return { status: 'conflict', present: 'absent', ...told() };
        case 'at-once':
          await sleep(pauseMs * (0.5 + Math.random()), undefined, { signal: limit.signal });
      }
    }
  }

  /** Without an ETag the next write would have no condition that every provider honours. */
  #versionIn(tag: string | undefined): string {
    if (tag) return tag;
    throw new ConditionsIgnoredError(
      `@locks/s3: the provider of the bucket "${this.#options.bucket}" tells no ETag of an object, so that writes cannot be compared. ` +
        'Use a provider that does, and no proxy that leaves it out.',
    );
  }

  /** Sends a command; what S3 refuses because of the object that is there, or is not, is an answer. */
  async #send(any: Command, limit: RequestLimit) {
    // The types of the SDK know one command at a time.
    const command = any as GetObjectCommand;
    const time = watchAnswerTime(command);
    const told = (): { now?: number } => {
      const now = time();
      return now === undefined ? {} : { now };
    };
    try {
      const answer: unknown = await this.#options.client.send(command, { abortSignal: limit.signal });
      return { answer, told, refusal: undefined };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== undefined) return { answer: {}, told, refusal };
      throw explained(error, this.#options.bucket);
    }
  }
}

function refusalOf(error: unknown): 'other' | 'absent' | 'at-once' | undefined {
  if ((error as Error).name === 'NoSuchKey') return 'absent';
  switch (statusOf(error)) {
    case 409:
      return 'at-once';
    case 412:
      return 'other';
    default:
      return undefined;
  }
}

function recordOf(object: { readonly bytes: Uint8Array; readonly version: string } | undefined) {
  return object && object.bytes.length > 0 ? { value: object.bytes, version: object.version } : undefined;
}
