import type { ChangeStream, Collection, Db } from 'mongodb';

/** How long the stream stays open when nothing is watched any more, in milliseconds. */
const LINGER_MS = 10_000;
/** How long no stream is opened after one failed, in milliseconds: on a server without a replica set each one does. */
const PAUSE_MS = 60_000;
/** The stream keeps a connection for itself nearly all the time. */
const LEAST_CONNECTIONS = 2;

/** What a stream tells of each change. */
interface Change {
  readonly documentKey?: { readonly _id?: unknown };
}

/**
 * Tells of changes in a collection, where the servers have change streams: in replica sets and sharded clusters. All that is watched
 * shares one stream, open while something is. Elsewhere, and without the right to open one, nothing is told.
 */
export class ChangeTeller {
  readonly #collection: Collection;
  readonly #watched = new Map<string, Set<() => void>>();
  #stream: ChangeStream | undefined;
  #closing: Promise<unknown> = Promise.resolve();
  #pausedUntil = 0;
  #linger: NodeJS.Timeout | undefined;

  constructor(collection: Collection) {
    this.#collection = collection;
  }

  watch(key: string, changed: () => void): () => void {
    const told = () => changed();
    const others = this.#watched.get(key);
    if (others === undefined) this.#watched.set(key, new Set([told]));
    else others.add(told);
    clearTimeout(this.#linger);
    this.#open();
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
    await this.#closing;
  }

  #open(): void {
    if (this.#stream !== undefined || performance.now() < this.#pausedUntil) return;
    if (!hasConnections(this.#collection)) return;
    try {
      const stream = this.#collection.watch([{ $project: { documentKey: 1 } }]);
      this.#stream = stream;
      stream.on('change', (change: Change) => this.#tell(change));
      stream.on('error', () => this.#fail(stream));
      stream.on('close', () => this.#fail(stream));
    } catch {
      this.#pausedUntil = performance.now() + PAUSE_MS;
    }
  }

  #tell({ documentKey }: Change): void {
    const id = documentKey?._id;
    // The collection was dropped or renamed.
    if (typeof id !== 'string') this.#tellAll();
    else for (const told of [...(this.#watched.get(id) ?? [])]) told();
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
    if (stream === undefined) return;
    this.#closing = Promise.all([this.#closing, stream.close().catch(() => undefined)]);
  }
}

/** A pool of one connection would wait for each answer of the stream. Older drivers do not tell the size. */
function hasConnections(collection: Collection): boolean {
  const { db } = collection as { readonly db?: Db };
  const { maxPoolSize = 0 } = (db?.client.options ?? {}) as { readonly maxPoolSize?: number };
  return maxPoolSize === 0 || maxPoolSize >= LEAST_CONNECTIONS;
}
