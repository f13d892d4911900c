import type {
  RecordClock,
  RecordsRead,
  RecordStore,
  RecordWrite,
  RecordWritten,
  StoredRecord,
} from '../src/record-store.ts';

/** The connection broke. */
export class Broken extends Error {}

/** A store of records in this process. What `around` does with a request decides whether, when and how often it is carried out. */
export class LocalStore implements RecordStore {
  readonly name = 'local';
  readonly maxValueBytes = 100_000;
  readonly clock: RecordClock;
  readonly records = new Map<string, StoredRecord>();
  readonly requests: string[] = [];
  around: <T extends object>(what: string, execute: () => T) => Promise<T> = async (_, execute) => execute();
  #written = 0;

  constructor(clock: RecordClock = { stepMs: 1, skewMs: 0, endsHolds: false }) {
    this.clock = clock;
  }

  read(keys: readonly string[]): Promise<RecordsRead> {
    return this.#carryOut(`read ${keys.join(' ')}`, () => ({
      records: keys.map((key) => this.records.get(key)),
    }));
  }

  write({ key, value, ifVersion }: RecordWrite): Promise<RecordWritten> {
    return this.#carryOut(`write ${key}`, () => {
      if (this.records.get(key)?.version !== ifVersion) return { status: 'conflict' };
      const version = (this.#written += 1);
      if (value === undefined) this.records.delete(key);
      else this.records.set(key, { value, version });
      return { status: 'written', version };
    });
  }

  isRetryable(error: unknown): boolean {
    return error instanceof Broken;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #carryOut<T extends object>(what: string, execute: () => T): Promise<T> {
    this.requests.push(what);
    const now =
      this.clock.endsHolds === false
        ? undefined
        : Math.floor(Date.now() / this.clock.stepMs) * this.clock.stepMs;
    return this.around(what, () => ({ ...execute(), ...(now !== undefined && { now }) }));
  }
}
