import type {
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
  #versions = 0;

  write({ key, value, ifVersion }: RecordWrite): RecordVersion | undefined {
    if (this.byKey.get(key)?.version !== ifVersion) return undefined;
    const version = `v${(this.#versions += 1)}`;
    if (value === undefined) this.byKey.delete(key);
    else this.byKey.set(key, { value, version });
    return version;
  }
}

export interface MemoryStoreOptions {
  readonly clock?: RecordClock;
  /** The store's time, in milliseconds. */
  readonly now?: () => number;
  readonly pace?: RecordPace;
  readonly maxValueBytes?: number;
  /** Whether a conflict has the record that is there. */
  readonly tells?: boolean;
}

/** A store in the memory of this process, whose answers a test may change. */
export class MemoryStore implements RecordStore {
  readonly name = 'records';
  readonly maxValueBytes: number;
  readonly clock?: RecordClock;
  readonly pace?: RecordPace;
  /** The requests so far, by what they did. */
  readonly counts = { read: 0, written: 0, conflict: 0 };
  /** Called with each write in place of the store. */
  instead:
    | ((write: RecordWrite, apply: () => RecordWritten) => RecordWritten | Promise<RecordWritten>)
    | undefined;
  /** Called before each read is answered. */
  beforeRead: ((keys: readonly string[]) => void) | undefined;
  readonly #records: Records;
  readonly #tells: boolean;
  readonly #now: (() => number) | undefined;

  constructor(records: Records, options: MemoryStoreOptions = {}) {
    this.#records = records;
    this.#tells = options.tells ?? true;
    this.#now = options.now;
    this.maxValueBytes = options.maxValueBytes ?? 1_000_000;
    if (options.clock !== undefined) this.clock = options.clock;
    if (options.pace !== undefined) this.pace = options.pace;
  }

  async read(keys: readonly string[]): Promise<RecordsRead> {
    this.counts.read += 1;
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
    return this.#now === undefined ? {} : { now: this.#now() };
  }
}
