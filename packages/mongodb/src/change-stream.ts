import { withTimeLimit } from '@locks/core/backend';
import type { RecordChange, StoredRecord } from '@locks/record-protocol';
import type { ChangeStream, Collection, Db, Document } from 'mongodb';

/** How long the stream stays open when nothing is watched any more, in milliseconds. */
const LINGER_MS = 10_000;
/** How long no stream is opened after one failed, in milliseconds: on a server without a replica set each one does. */
const PAUSE_MS = 60_000;
/** How long the end of a stream is waited for, in milliseconds: the driver asks the server for it, without a limit. */
const CLOSE_MS = 500;
/** How long a call that came shows that others will, in milliseconds: longer than a heartbeat stays away. */
const LIVE_MS = 5_000;
/** The stream keeps a connection for itself nearly all the time. */
const LEAST_CONNECTIONS = 2;

/** What a stream tells of each change. */
interface Change {
  readonly documentKey?: { readonly _id?: unknown };
  readonly fullDocument?: Document | null;
  readonly updateDescription?: { readonly updatedFields?: Document | null } | null;
}

type Changed = (change?: RecordChange) => void;

/**
 * Tells of changes in a collection that call a client, where the servers have change streams: in replica sets and sharded clusters. All
 * that is watched shares one stream, open while something is; the server leaves out the writes that call others. Elsewhere, and without
 * the right to open one, nothing is told.
 */
export class ChangeTeller {
  readonly #collection: Collection;
  readonly #recordOf: (document: Document) => StoredRecord;
  readonly #watched = new Map<string, Set<Changed>>();
  #client = '';
  #stream: ChangeStream | undefined;
  #toldAt = -Infinity;
  #closing: Promise<unknown> = Promise.resolve();
  #pausedUntil = 0;
  #linger: NodeJS.Timeout | undefined;

  constructor(collection: Collection, recordOf: (document: Document) => StoredRecord) {
    this.#collection = collection;
    this.#recordOf = recordOf;
  }

  /**
   * Whether the server tells of calls: it told of one a short while ago. Each heartbeat of this process calls it, so that this shows also
   * in a queue that does not move. What a server tells of inserts does not count: some tell of nothing else.
   */
  get isLive(): boolean {
    return performance.now() - this.#toldAt < LIVE_MS;
  }

  watch(key: string, changed: Changed, client: string): () => void {
    const told: Changed = (change) => changed(change);
    const others = this.#watched.get(key);
    if (others === undefined) this.#watched.set(key, new Set([told]));
    else others.add(told);
    clearTimeout(this.#linger);
    this.#open(client);
    return () => {
      const left = this.#watched.get(key);
      if (left?.delete(told) && left.size === 0) this.#watched.delete(key);
      if (this.#watched.size > 0 || this.#stream === undefined) return;
      clearTimeout(this.#linger);
      this.#linger = setTimeout(() => this.#end(), LINGER_MS).unref();
    };
  }

  async close(): Promise<void> {
    this.#watched.clear();
    clearTimeout(this.#linger);
    this.#end();
    await withTimeLimit(this.#closing, CLOSE_MS, () => undefined);
  }

  #open(client: string): void {
    if (this.#stream !== undefined || performance.now() < this.#pausedUntil) return;
    if (!hasConnections(this.#collection)) return;
    try {
      const stream = this.#collection.watch(callsOf(client));
      this.#stream = stream;
      this.#client = client;
      stream.on('change', (change: Change) => this.#tell(change));
      stream.on('error', () => this.#fail(stream));
      stream.on('close', () => this.#fail(stream));
    } catch {
      this.#pausedUntil = performance.now() + PAUSE_MS;
    }
  }

  #tell({ documentKey, fullDocument, updateDescription }: Change): void {
    const id = documentKey?._id;
    // The collection was dropped or renamed.
    if (typeof id !== 'string') return this.#tellAll();
    if (updateDescription !== undefined && updateDescription !== null) this.#toldAt = performance.now();
    const written = fullDocument ?? updateDescription?.updatedFields ?? {};
    const change = { wakes: [this.#client], record: this.#recordOf(written) };
    for (const told of [...(this.#watched.get(id) ?? [])]) told(change);
  }

  #tellAll(): void {
    for (const each of [...this.#watched.values()]) for (const told of [...each]) told();
  }

  /** The driver resumes a stream by itself after failures that pass. */
  #fail(stream: ChangeStream): void {
    if (this.#stream !== stream) return;
    this.#pausedUntil = performance.now() + PAUSE_MS;
    this.#end();
  }

  #end(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    this.#toldAt = -Infinity;
    if (stream === undefined) return;
    this.#closing = Promise.all([this.#closing, stream.close().catch(() => undefined)]);
  }
}

/** The field of a document that says whom its last write calls: another text in each write, since the server tells what is new alone. */
export function callOf(client: string | undefined, version: string): string {
  return client === undefined ? '' : `${client} ${version}`;
}

/** The changes of which a client is told: those that call it, and what is done to the collection as a whole. */
function callsOf(client: string): Document[] {
  const call = { $regex: `^${client} ` };
  const calls = [{ 'fullDocument.calls': call }, { 'updateDescription.updatedFields.calls': call }];
  return [{ $match: { $or: [...calls, { operationType: { $in: ['drop', 'rename', 'invalidate'] } }] } }];
}

/** A pool of one connection would wait for each answer of the stream. Older drivers do not tell the size. */
function hasConnections(collection: Collection): boolean {
  const { db } = collection as { readonly db?: Db };
  const { maxPoolSize = 0 } = (db?.client.options ?? {}) as { readonly maxPoolSize?: number };
  return maxPoolSize === 0 || maxPoolSize >= LEAST_CONNECTIONS;
}
