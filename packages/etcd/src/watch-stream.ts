import type { IKeyValue, IWatchResponse } from 'etcd3';
import { decodeEntry, endOf, type EntryEnd } from './etcd-entry.ts';
import { type EtcdPort, hangUp, type WatchDuplex } from './etcd-port.ts';
import { read } from './conditions.ts';
import type { KeyRange } from './keys.ts';
import { keysAt, revisionOf } from './txn-responses.ts';

export type WatchEvent =
  | { readonly type: 'delete'; readonly revision: number; readonly was: EntryEnd }
  | { readonly type: 'put'; readonly kv: IKeyValue; readonly revision: number }
  /** The server no longer has the history since the watch broke: the subscriber must read the key. */
  | { readonly type: 'unknown' };

export interface WatchRequest {
  readonly range: KeyRange | { readonly key: Buffer };
  /** Whether puts are reported, too. */
  readonly puts: boolean;
  /** The first revision of interest: later events are reported, however late the watch starts. */
  readonly from: number;
  /**
   * Starts at the present, and reads the key if there were writes since `from`. A server serves watches that start in
   * the past only ten times a second, and sends them nothing until then. Valid for one key, and for deletes only.
   */
  readonly atOnce: boolean;
  readonly notify: (event: WatchEvent) => void;
}

/** A watch that lasts until it is stopped. */
export interface Watch {
  stop(): void;
}

interface Subscription extends WatchRequest {
  readonly id: number;
  /** The revision after the newest event that was reported. */
  next: number;
  /** Set once the watch was requested on some stream: a later stream resumes it. */
  wasCreated: boolean;
  /** The generation of the stream on which the watch starts at the present; `undefined`: on none. */
  presentOn: number | undefined;
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
const LONGEST_PROBE_MS = 2_000;
const READ_MS = 3_000;

/** All watches of one backend, on one stream that is open while there are any. A new stream resumes where the last one broke. */
export class WatchStream {
  readonly #port: EtcdPort;
  readonly #subscriptions = new Map<number, Subscription>();
  /** The subscriptions to single keys. */
  readonly #byKey = new Map<string, Set<Subscription>>();
  #stream: WatchDuplex | undefined;
  /** Distinguishes the current stream, open or opening, from earlier ones. */
  #generation = 0;
  #opening = false;
  #lastId = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #retry: NodeJS.Timeout | undefined;
  #probedAt: number | undefined;
  #closed = false;

  constructor(port: EtcdPort) {
    this.#port = port;
  }

  watch(request: WatchRequest): Watch {
    this.#lastId += 1;
    const subscription: Subscription = {
      ...request,
      id: this.#lastId,
      next: request.from,
      wasCreated: false,
      presentOn: undefined,
    };
    this.#subscriptions.set(subscription.id, subscription);
    this.#index(subscription);
    if (this.#stream !== undefined) this.#create(this.#stream, subscription);
    else this.#open();
    return { stop: () => this.#stop(subscription) };
  }

  /** Notifies watches of a key that this process deleted, without waiting for the server's event. */
  deleted(key: Buffer, revision: number, was: EntryEnd): WatchEvent {
    const event: WatchEvent = { type: 'delete', revision, was };
    const watching = this.#byKey.get(key.toString('latin1'));
    for (const { notify } of [...(watching ?? [])]) notify(event);
    return event;
  }

  /** Asks the stream for a response. A stream that has not answered an earlier probe is replaced: it may be dead without a reset. */
  probe(): void {
    if (this.#stream === undefined) return;
    const now = performance.now();
    if (this.#probedAt === undefined) {
      this.#probedAt = now;
      this.#stream.write({ progress_request: {} });
    } else if (now - this.#probedAt > LONGEST_PROBE_MS) {
      // A stream that is cancelled while writable makes the client drop the connection as well.
      this.#stream.cancel();
      this.#broken(this.#generation);
    }
  }

  close(): void {
    this.#closed = true;
    this.#subscriptions.clear();
    this.#byKey.clear();
    this.#drop();
  }

  #open(): void {
    if (this.#opening || this.#retry !== undefined || this.#closed) return;
    this.#opening = true;
    const generation = (this.#generation += 1);
    this.#port.watchStream().then(
      (stream) => {
        this.#opening = false;
        if (generation !== this.#generation || this.#subscriptions.size === 0) return hangUp(stream);
        this.#stream = stream;
        stream.on('data', (response) => {
          if (generation === this.#generation) this.#received(response);
        });
        stream.on('error', () => this.#broken(generation));
        stream.on('end', () => this.#broken(generation));
        for (const subscription of this.#subscriptions.values()) this.#create(stream, subscription);
      },
      () => {
        this.#opening = false;
        this.#broken(generation);
      },
    );
  }

  #create(stream: WatchDuplex, subscription: Subscription): void {
    const { id, range, puts, next, atOnce, wasCreated } = subscription;
    const isPresent = atOnce && !wasCreated;
    subscription.wasCreated = true;
    if (isPresent) subscription.presentOn = this.#generation;
    stream.write({
      create_request: {
        ...range,
        watch_id: id,
        ...(isPresent ? {} : { start_revision: next }),
        // The previous value says whether the deleted entry held.
        ...(puts ? {} : { filters: ['Noput'], prev_kv: true }),
      },
    });
  }

  #received(response: IWatchResponse): void {
    this.#probedAt = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
    const subscription = this.#subscriptions.get(Number(response.watch_id));
    if (subscription === undefined) return;
    if (response.canceled) {
      // The server has dropped the watch, most often because its revision was compacted.
      this.#forget(subscription);
      subscription.notify({ type: 'unknown' });
      if (this.#subscriptions.size === 0) this.#drop();
      return;
    }
    // The watch reports what is written after this revision.
    const isPresent = response.created && subscription.presentOn === this.#generation;
    if (isPresent && revisionOf(response) >= subscription.next) void this.#readKey(subscription);
    for (const { type, kv, prev_kv: before } of response.events) {
      const revision = Number(kv.mod_revision);
      subscription.next = Math.max(subscription.next, revision + 1);
      subscription.notify(
        type === 'Delete'
          ? { type: 'delete', revision, was: before ? endOf(decodeEntry(before)) : 'unknown' }
          : { type: 'put', kv, revision },
      );
    }
  }

  /** Finds out whether the key of a watch was deleted before the watch began. */
  async #readKey(subscription: Subscription): Promise<void> {
    const { range, id, notify } = subscription;
    const { key } = range;
    try {
      const response = await this.#port.run([read({ key })], READ_MS);
      if (keysAt(response, 0).length > 0 || this.#subscriptions.get(id) !== subscription) return;
      notify({ type: 'delete', revision: revisionOf(response), was: 'unknown' });
    } catch {
      if (this.#subscriptions.get(id) === subscription && this.#forget(subscription))
        notify({ type: 'unknown' });
    }
  }

  #index(subscription: Subscription): void {
    if ('range_end' in subscription.range) return;
    const key = subscription.range.key.toString('latin1');
    const others = this.#byKey.get(key);
    if (others === undefined) this.#byKey.set(key, new Set([subscription]));
    else others.add(subscription);
  }

  #forget(subscription: Subscription): boolean {
    const key = subscription.range.key.toString('latin1');
    const others = this.#byKey.get(key);
    if (others?.delete(subscription) === true && others.size === 0) this.#byKey.delete(key);
    return this.#subscriptions.delete(subscription.id);
  }

  #stop(subscription: Subscription): void {
    const { id } = subscription;
    if (!this.#forget(subscription)) return;
    if (this.#subscriptions.size === 0) this.#drop();
    else this.#stream?.write({ cancel_request: { watch_id: id } });
  }

  /** Closes the stream: an open one without watches would keep the process alive. */
  #drop(): void {
    this.#generation += 1;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    if (this.#stream !== undefined) hangUp(this.#stream);
    this.#stream = undefined;
    this.#opening = false;
    this.#probedAt = undefined;
  }

  #broken(generation: number): void {
    if (generation !== this.#generation) return;
    this.#drop();
    if (this.#closed || this.#subscriptions.size === 0) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      if (this.#subscriptions.size > 0) this.#open();
    }, this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }
}
