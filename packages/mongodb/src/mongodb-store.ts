import { randomUUID } from 'node:crypto';
import {
  clockOf,
  type RecordChange,
  type RecordClock,
  type RecordsRead,
  type RecordStore,
  type RecordWrite,
  type RecordWritten,
  type RequestLimit,
  type StoredRecord,
} from '@locks/record-protocol';
import type { Binary, Collection, Db, ReadConcernLike, WriteConcernSettings } from 'mongodb';
import { callOf, ChangeTeller } from './change-stream.ts';
import { codeOf, DUPLICATE_KEY, isClosedClient, isPassing, UNAUTHORIZED } from './mongodb-error.ts';
import type { CheckedMongodbOptions } from './options.ts';

/** A record as a document. */
interface RecordDocument {
  readonly _id: string;
  /** A fresh one for each write: a counter would come back after a deletion, or after a failover that lost writes. */
  readonly version: string;
  readonly value: Binary | Buffer;
  /** By the clock of the primary. */
  readonly writtenAt: Date;
  /** Present while nobody holds and nobody waits. */
  readonly idleSince?: Date;
  /** The client that the last write calls: each change stream has the calls of its own client. */
  readonly calls?: string;
}

/** Any user may send them. The first one is new in 4.4.2; with a strict version of the API there is only that. */
const TELLING_COMMANDS = [{ hello: 1 }, { isMaster: 1 }] as const;
/** How long an idle record stays, in seconds: more than the day that it must. */
const IDLE_SECONDS = 90_000;
/** A document has 16 MiB at most. */
const MOST_BYTES = 8 * 1_048_576;

/** Whatever the client of the user sets: values come as they are stored. */
const AS_STORED = { promoteBuffers: true, promoteValues: true, raw: false } as const;
const writeConcern: WriteConcernSettings = { w: 'majority' };
const readConcern: ReadConcernLike = { level: 'majority' };

/**
 * Records as documents. A write takes place if the document still has the version that was read, and is answered when a majority has
 * it. A primary that was deposed without knowing it may answer a read that is behind, but acknowledges no write.
 */
export class MongodbStore implements RecordStore {
  readonly name = 'mongodb';
  readonly maxValueBytes = MOST_BYTES;
  readonly clock: RecordClock;
  readonly #collection: Collection<RecordDocument>;
  readonly #changes: ChangeTeller;
  #hasIndex = false;
  /** Whether the last request failed since the application has closed the client, which the driver does not tell otherwise. */
  #isClientClosed = false;
  readonly #failed = (error: unknown): never => {
    this.#isClientClosed = isClosedClient(error);
    throw error;
  };

  constructor(options: Pick<CheckedMongodbOptions, 'collection' | 'expiry' | 'skewMs'>) {
    const { collection } = options;
    this.clock = clockOf(options, 1);
    this.#collection = collection as unknown as Collection<RecordDocument>;
    this.#changes = new ChangeTeller(collection, (document) => recordOf(document as RecordDocument));
  }

  get tellsWhom(): boolean {
    return this.#changes.isLive;
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const pipeline = [{ $match: { _id: { $in: keys } } }, { $addFields: { now: '$$NOW' } }];
    const found = await this.#collection
      .aggregate<RecordDocument & { now: Date }>(pipeline, { ...READS, ...limits(limit) })
      .toArray()
      .catch(this.#failed);
    this.#isClientClosed = false;
    const byKey = new Map(found.map((document) => [document._id, recordOf(document)]));
    // A read that finds nothing tells no time.
    const now = found[0]?.now.getTime();
    return { records: keys.map((key) => byKey.get(key)), ...(now !== undefined && { now }) };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const { key, value, ifVersion, isIdle, wakes: [called] = [] } = write;
    const given = { ...AS_STORED, writeConcern, ...limits(limit) };
    const version = randomUUID();
    // No document has the fresh version: without an old one, this inserts, or finds a duplicate key.
    const filter = { _id: key, version: ifVersion === undefined ? version : String(ifVersion) };
    if (value === undefined) {
      const { deletedCount } = await this.#collection.deleteOne(filter, given).catch(this.#failed);
      return deletedCount === 1 ? { status: 'written', version } : { status: 'conflict' };
    }
    if (isIdle && !this.#hasIndex) void this.#makeIndex();
    const set = { version, value: Buffer.from(value), calls: callOf(called, version) };
    const update = {
      $set: set,
      $currentDate: { writtenAt: true as const, ...(isIdle && { idleSince: true as const }) },
      ...(!isIdle && { $unset: { idleSince: '' as const } }),
    };
    try {
      const written = await this.#collection.findOneAndUpdate(filter, update, {
        ...given,
        upsert: ifVersion === undefined,
        returnDocument: 'after',
        projection: { writtenAt: 1 },
        includeResultMetadata: false,
      });
      if (written === null) return { status: 'conflict' };
      return { status: 'written', version, now: written.writtenAt.getTime() };
    } catch (error) {
      return codeOf(error) === DUPLICATE_KEY ? { status: 'conflict' } : this.#failed(error);
    }
  }

  async askTime({ signal }: RequestLimit): Promise<number | undefined> {
    // The first drivers of 6 keep the database to themselves.
    const { db, s } = this.#collection as { readonly db?: Db; readonly s?: { readonly db?: Db } };
    const database = db ?? s?.db;
    let failure: unknown;
    for (const command of TELLING_COMMANDS) {
      try {
        const { localTime } = (await database?.command(command, { signal })) ?? {};
        if (localTime instanceof Date) return localTime.getTime();
      } catch (error) {
        failure = error;
      }
    }
    // A server that knows neither command refuses both: that is no failure which passes.
    if (failure !== undefined && (isPassing(failure) || isClosedClient(failure) || signal.aborted))
      this.#failed(failure);
    return undefined;
  }

  watch(key: string, changed: (change?: RecordChange) => void, client: string): () => void {
    return this.#changes.watch(key, changed, client);
  }

  /** Strings are in the order of their bytes: those that start with the prefix come one after another. */
  async *list(prefix: string, limit: RequestLimit): AsyncGenerator<StoredRecord> {
    const found = this.#collection
      .find({ _id: { $gte: prefix } }, { ...READS, ...limits(limit) })
      .sort({ _id: 1 });
    for await (const document of found) {
      if (!document._id.startsWith(prefix)) return;
      yield recordOf(document);
    }
  }

  /** Makes the collection, and the index by which idle records end. */
  async prepare(): Promise<void> {
    await this.#createIndex().catch((error: unknown) => {
      if (codeOf(error) !== UNAUTHORIZED) this.#failed(error);
      const { namespace } = this.#collection;
      const message = `this user may not make the index of ${namespace}: grant the actions createCollection and createIndex on it`;
      throw new Error(message, { cause: error });
    });
  }

  isClientClosed(): boolean {
    return this.#isClientClosed;
  }

  isRetryable(error: unknown): boolean {
    return isPassing(error);
  }

  async close(): Promise<void> {
    // An index that is being made is made without this process too.
    await this.#changes.close();
  }

  /** Idle records end by it. Without the right to make it they stay, until somebody else makes it. */
  async #makeIndex(): Promise<void> {
    this.#hasIndex = true;
    await this.#createIndex().catch(() => {
      this.#hasIndex = false;
    });
  }

  async #createIndex(): Promise<void> {
    await this.#collection.createIndex({ idleSince: 1 }, { expireAfterSeconds: IDLE_SECONDS });
    this.#hasIndex = true;
  }
}

const READS = { ...AS_STORED, readConcern, readPreference: 'primary' } as const;

/** The server stops at the time, and the client at the signal: on its way to a primary or to a connection, or while it waits for the answer. */
function limits({ timeoutMs, signal }: RequestLimit): {
  readonly maxTimeMS: number;
  readonly signal: AbortSignal;
} {
  return { maxTimeMS: Math.ceil(timeoutMs), signal };
}

/** The record in a document. What something else has written is a record without content, which is none of a lock. */
function recordOf({ version, value }: RecordDocument): StoredRecord {
  if (value instanceof Uint8Array) return { version, value };
  const isBinary = typeof (value as Partial<Binary> | undefined)?.value === 'function';
  return { version: version ?? '', value: isBinary ? value.value() : new Uint8Array() };
}
