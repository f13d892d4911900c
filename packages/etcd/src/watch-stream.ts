import type { IKeyValue, IWatchResponse } from 'etcd3';
import type { EtcdPort, WatchDuplex } from './etcd-port.ts';
import type { KeyRange } from './keys.ts';

export type WatchEvent =
  | { readonly type: 'delete'; readonly key: Buffer; readonly revision: number }
  | { readonly type: 'put'; readonly kv: IKeyValue; readonly revision: number }
  /** The server no longer knows what happened meanwhile: look for yourself. */
  | { readonly type: 'unknown' };

export interface WatchRequest {
  readonly range: KeyRange | { readonly key: Buffer };
  /** Whether puts are told too. */
  readonly puts: boolean;
  /** The first revision of interest: what happened since is told, however late the watch begins. */
  readonly from: number;
  readonly tell: (event: WatchEvent) => void;
}

/** A watch that goes on until it is stopped. */
export interface Watch {
  stop(): void;
}

interface Subscription extends WatchRequest {
  readonly id: number;
  /** What has been told already ends before it. */
  next: number;
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
const LONGEST_PROBE_MS = 2_000;

/** All watches of one backend, on one stream that is open while there are any. It resumes where it broke off. */
export class WatchStream {
  readonly #port: EtcdPort;
  readonly #subscriptions = new Map<number, Subscription>();
  /** Those of one key. */
  readonly #byKey = new Map<string, Set<Subscription>>();
  #stream: WatchDuplex | undefined;
  /** Tells the stream that is opened, or open, from those before. */
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
    const subscription: Subscription = { ...request, id: this.#lastId, next: request.from };
    this.#subscriptions.set(subscription.id, subscription);
    this.#index(subscription);
    if (this.#stream !== undefined) this.#create(this.#stream, subscription);
    else this.#open();
    return { stop: () => this.#stop(subscription) };
  }

  /** This process deleted a key itself: whoever watches it need not wait for the server to say so. */
  deleted(key: Buffer, revision: number): void {
    const watching = this.#byKey.get(key.toString('latin1'));
    for (const { tell } of [...(watching ?? [])]) tell({ type: 'delete', key, revision });
  }

  /** Asks for a sign of life. A stream that gave none since it was asked before is replaced: no end of it may be told. */
  probe(): void {
    if (this.#stream === undefined) return;
    const now = performance.now();
    if (this.#probedAt === undefined) {
      this.#probedAt = now;
      this.#stream.write({ progress_request: {} });
    } else if (now - this.#probedAt > LONGEST_PROBE_MS) {
      // Cancelled while it could still be written to: the client then gives up the connection as well.
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

  #create(stream: WatchDuplex, { id, range, puts, next }: Subscription): void {
    stream.write({
      create_request: {
        ...range,
        watch_id: id,
        start_revision: next,
        ...(puts ? {} : { filters: ['Noput'] }),
      },
    });
  }

  #received(response: IWatchResponse): void {
    this.#probedAt = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
    const subscription = this.#subscriptions.get(Number(response.watch_id));
    if (subscription === undefined) return;
    if (response.canceled) {
      // Compacted, most often. The server has forgotten the watch.
      this.#forget(subscription);
      subscription.tell({ type: 'unknown' });
      if (this.#subscriptions.size === 0) this.#drop();
      return;
    }
    for (const { type, kv } of response.events) {
      const revision = Number(kv.mod_revision);
      subscription.next = Math.max(subscription.next, revision + 1);
      subscription.tell(
        type === 'Delete' ? { type: 'delete', key: kv.key, revision } : { type: 'put', kv, revision },
      );
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

  /** Nobody watches: an open stream would keep the process alive. */
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

/** Ended first: a client takes the end of a stream that can be written to for the failure of its host. */
export function hangUp(stream: { end(): void; cancel(): void }): void {
  stream.end();
  stream.cancel();
}
