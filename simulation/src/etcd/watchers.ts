import type { IWatchCreateRequest, IWatchRequest, IWatchResponse } from 'etcd3';
import {
  contains,
  type KeyEvent,
  type KeySpan,
  keyValueOf,
  spanOf,
  type VersionedKeys,
} from './versioned-keys.ts';

interface Watcher {
  readonly id: string;
  readonly span: KeySpan;
  readonly puts: boolean;
  readonly withBefore: boolean;
  /** The first revision that it was not told of. */
  next: number;
  /** Whether it is told of a write at once. */
  isAtPresent: boolean;
}

/** What one stream of watches is told. */
export type Told = (what: () => string, response: IWatchResponse) => void;

const NO_ID = '-1';

/** The watches of one stream at a server. */
export class Watchers {
  readonly #keys: VersionedKeys;
  readonly #header: () => IWatchResponse['header'];
  readonly #tell: Told;
  readonly #watchers = new Map<string, Watcher>();

  constructor(keys: VersionedKeys, header: () => IWatchResponse['header'], tell: Told) {
    this.#keys = keys;
    this.#header = header;
    this.#tell = tell;
  }

  get all(): readonly Watcher[] {
    return [...this.#watchers.values()];
  }

  received({
    create_request: create,
    cancel_request: cancel,
    progress_request: progress,
  }: IWatchRequest): void {
    if (create !== undefined) this.#create(create);
    if (cancel !== undefined) this.#cancel(String(cancel.watch_id));
    // A server says nothing while one of the watches is behind.
    if (progress !== undefined && this.all.every(({ isAtPresent }) => isAtPresent))
      this.#tell(() => 'progress', this.#response(NO_ID, {}));
  }

  /** Something was written: watches at the present hear of it, the watches in any order. */
  written(watcher: Watcher, events: readonly KeyEvent[]): void {
    if (!watcher.isAtPresent || !this.#watchers.has(watcher.id)) return;
    this.#report(watcher, events);
  }

  /** Brings watches that are behind to the present. Those whose history was compacted are cancelled. */
  catchUp(): void {
    for (const watcher of this.all) {
      if (watcher.isAtPresent) continue;
      if (watcher.next < this.#keys.compacted) {
        this.#watchers.delete(watcher.id);
        const compacted = { canceled: true, compact_revision: String(this.#keys.compacted) };
        this.#tell(
          () => `watch ${watcher.id} is cancelled: compacted`,
          this.#response(watcher.id, compacted),
        );
        continue;
      }
      watcher.isAtPresent = true;
      this.#report(watcher, this.#keys.since(watcher.next));
    }
  }

  #create({
    watch_id: given,
    start_revision: start,
    filters = [],
    prev_kv: withBefore,
    ...range
  }: IWatchCreateRequest): void {
    const id = String(given);
    const { revision } = this.#keys;
    const next = Number(start ?? 0) === 0 ? revision + 1 : Number(start);
    const watcher: Watcher = {
      id,
      span: spanOf(range),
      puts: !filters.includes('Noput'),
      withBefore: withBefore === true,
      next,
      isAtPresent: next > revision,
    };
    this.#watchers.set(id, watcher);
    this.#tell(() => `watch ${id} is created`, this.#response(id, { created: true }));
  }

  #cancel(id: string): void {
    if (this.#watchers.delete(id))
      this.#tell(() => `watch ${id} is cancelled`, this.#response(id, { canceled: true }));
  }

  #report(watcher: Watcher, events: readonly KeyEvent[]): void {
    const { span, puts, withBefore, next } = watcher;
    watcher.next = this.#keys.revision + 1;
    const wanted = events.filter(
      ({ key, revision, written }) =>
        revision >= next && contains(span, key) && (puts || written === undefined),
    );
    if (wanted.length === 0) return;
    const response = this.#response(watcher.id, {
      events: wanted.map((event) => eventOf(event, withBefore)) as IWatchResponse['events'],
    });
    this.#tell(() => `watch ${watcher.id}: ${wanted.map(inWords).join(', ')}`, response);
  }

  #response(id: string, rest: Partial<IWatchResponse>): IWatchResponse {
    return {
      header: this.#header(),
      watch_id: id,
      created: false,
      canceled: false,
      compact_revision: '0',
      cancel_reason: '',
      events: [],
      ...rest,
    } as IWatchResponse;
  }
}

function eventOf({ key, revision, written, before }: KeyEvent, withBefore: boolean) {
  const deleted = {
    ...{ key, value: Buffer.alloc(0), createRevision: 0, modRevision: revision, version: 0, lease: '0' },
  };
  return {
    type: written === undefined ? 'Delete' : 'Put',
    kv: keyValueOf(written ?? deleted),
    prev_kv: withBefore && before !== undefined ? keyValueOf(before) : null,
  };
}

function inWords({ key, written }: KeyEvent): string {
  return `${written === undefined ? 'deleted' : 'put'} ${key}`;
}
