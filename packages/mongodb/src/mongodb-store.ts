import { randomUUID } from 'node:crypto';
import type {
  RecordsRead,
  RecordStore,
  RecordWrite,
  RecordWritten,
  RequestLimit,
  StoredRecord,
} from '@locks/record-protocol';
import type { Binary, Collection, ReadConcernLike, WriteConcernSettings } from 'mongodb';
import { ChangeTeller } from './change-stream.ts';
import { codeOf, DUPLICATE_KEY, isPassing } from './mongodb-error.ts';

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
}

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
  /** The clocks of the servers of a replica set may be apart. */
  readonly clock = { stepMs: 1, skewMs: 5_000 };
  readonly #collection: Collection<RecordDocument>;
  readonly #changes: ChangeTeller;
  #index: Promise<unknown> | undefined;

  constructor(collection: Collection) {
    this.#collection = collection as unknown as Collection<RecordDocument>;
    this.#changes = new ChangeTeller(collection);
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const pipeline = [{ $match: { _id: { $in: keys } } }, { $addFields: { now: '$$NOW' } }];
    const found = await this.#collection
      .aggregate<RecordDocument & { now: Date }>(pipeline, { ...READS, ...limits(limit) })
      .toArray();
    const byKey = new Map(found.map((document) => [document._id, recordOf(document)]));
    const now = found[0]?.now.getTime();
    return { records: keys.map((key) => byKey.get(key)), ...(now !== undefined && { now }) };
  }

  async write({ key, value, ifVersion, isIdle }: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const given = { ...AS_STORED, writeConcern, ...limits(limit) };
    const version = randomUUID();
    // No document has the fresh version: without an old one, this inserts, or finds a duplicate key.
    const filter = { _id: key, version: ifVersion === undefined ? version : String(ifVersion) };
    if (value === undefined) {
      const { deletedCount } = await this.#collection.deleteOne(filter, given);
      return deletedCount === 1 ? { status: 'written', version } : { status: 'conflict' };
    }
    if (isIdle) this.#index ??= this.#makeIndex();
    const set = { version, value: Buffer.from(value) };
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
      if (codeOf(error) === DUPLICATE_KEY) return { status: 'conflict' };
      throw error;
    }
  }

  watch(key: string, changed: () => void): () => void {
    return this.#changes.watch(key, changed);
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

  isRetryable(error: unknown): boolean {
    return isPassing(error);
  }

  async close(): Promise<void> {
    await Promise.all([this.#changes.close(), this.#index]);
  }

  /** Idle records end by it. Without the right to make it they stay, until somebody else makes it. */
  async #makeIndex(): Promise<void> {
    try {
      await this.#collection.createIndex({ idleSince: 1 }, { expireAfterSeconds: IDLE_SECONDS });
    } catch {
      this.#index = undefined;
    }
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

function recordOf({ version, value }: RecordDocument): StoredRecord {
  return { version, value: value instanceof Uint8Array ? value : value.value() };
}
