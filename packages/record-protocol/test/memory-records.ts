import type {
  RecordChange,
  RecordClock,
  RecordPace,
  RecordsRead,
  RecordStore,
  RecordVersion,
  RecordWrite,
  RecordWritten,
  StoredRecord,
} from '../src/index.ts';

/** The records that stores of several "processes" share. */
export class Records {
  readonly byKey = new Map<string, StoredRecord>();
  /** Those who watch a record, and are told of each write. */
  readonly watchers = new Set<{ readonly key: string; told(change: RecordChange): void }>();
  #versions = 0;

  write({ key, value, ifVersion, wakes = [] }: RecordWrite): RecordVersion | undefined {
    if (this.byKey.get(key)?.version !== ifVersion) return undefined;
    const version = `v${(this.#versions += 1)}`;
    if (value === undefined) this.byKey.delete(key);
    else this.byKey.set(key, { value, version });
    const record = this.byKey.get(key);
    for (const watcher of [...this.watchers])
      if (watcher.key === key) watcher.told({ wakes, ...(record && { record }) });
    return version;
  }
}

export interface MemoryStoreOptions {
  /** @defaultValue one by which no hold ends */
  readonly clock?: RecordClock;
  /** The store's time, in milliseconds. */
  readonly now?: () => number;
  readonly pace?: RecordPace;
  /** The store's time, in milliseconds, as only `askTime` tells it. */
  readonly asked?: () => number | undefined | Promise<number | undefined>;
  readonly maxValueBytes?: number;
  /** Whether a conflict has the record that is there. */
  readonly tells?: boolean;
  /** What a push says of the write. @defaultValue nothing is pushed */
  readonly pushes?: 'whom' | 'record';
}

/** A store in the memory of this process, whose answers a test may change. */
export class MemoryStore implements RecordStore {
  readonly name = 'records';
  readonly maxValueBytes: number;
  readonly clock: RecordClock;
  readonly pace?: RecordPace;
  readonly askTime?: () => Promise<number | undefined>;
  readonly tellsWhom: boolean;
  readonly watch?: RecordStore['watch'];
  /** The keys of the reads so far. */
  readonly keysRead: string[] = [];
  /** Called with each push in place of the listener. */
  insteadOfPush: ((push: () => void) => void) | undefined;
  /** The requests so far, by what they did. */
  readonly counts = { read: 0, written: 0, conflict: 0, asked: 0 };
  /** Called with each write in place of the store. */
  instead:
    | ((write: RecordWrite, apply: () => RecordWritten) => RecordWritten | Promise<RecordWritten>)
    | undefined;
  /** Called before each read is answered. */
  beforeRead: ((keys: readonly string[]) => void) | undefined;
  readonly #records: Records;
  readonly #tells: boolean;
  readonly #now: (() => number) | undefined;
  readonly #tellsTime: boolean;

  constructor(records: Records, options: MemoryStoreOptions = {}) {
    this.#records = records;
    this.#tells = options.tells ?? true;
    this.#now = options.now;
    this.maxValueBytes = options.maxValueBytes ?? 1_000_000;
    this.clock = options.clock ?? { stepMs: 1, skewMs: 0, endsHolds: false };
    this.#tellsTime = options.asked === undefined;
    const { asked } = options;
    if (asked !== undefined)
      this.askTime = async () => {
        this.counts.asked += 1;
        return await asked();
      };
    if (options.pace !== undefined) this.pace = options.pace;
    const { pushes } = options;
    this.tellsWhom = pushes !== undefined;
    if (pushes === undefined) return;
    this.watch = (key, changed) => {
      const told = ({ wakes, record }: RecordChange): void => {
        const push = (): void =>
          changed({ wakes, ...(pushes === 'record' && record !== undefined && { record }) });
        setImmediate(() => (this.insteadOfPush === undefined ? push() : this.insteadOfPush(push)));
      };
      const watcher = { key, told };
      records.watchers.add(watcher);
      return () => records.watchers.delete(watcher);
    };
  }

  async read(keys: readonly string[]): Promise<RecordsRead> {
    this.counts.read += 1;
    this.keysRead.push(...keys);
    this.beforeRead?.(keys);
    return { records: keys.map((key) => this.#records.byKey.get(key)), ...this.#time() };
  }

  async write(write: RecordWrite): Promise<RecordWritten> {
    const apply = (): RecordWritten => this.#write(write);
    const written = await (this.instead?.(write, apply) ?? apply());
    this.counts[written.status] += 1;
    return written;
  }

  async *list(prefix: string): AsyncGenerator<StoredRecord> {
    for (const [key, record] of this.#records.byKey) if (key.startsWith(prefix)) yield record;
  }

  isRetryable(error: unknown): boolean {
    return error instanceof Error && error.message === 'cut off';
  }

  async close(): Promise<void> {}

  #write(write: RecordWrite): RecordWritten {
    const version = this.#records.write(write);
    if (version !== undefined) return { status: 'written', version, ...this.#time() };
    const present = this.#records.byKey.get(write.key) ?? 'absent';
    return { status: 'conflict', ...(this.#tells && { present }), ...this.#time() };
  }

  #time(): { readonly now?: number } {
    return this.#now === undefined || !this.#tellsTime ? {} : { now: this.#now() };
  }
}
