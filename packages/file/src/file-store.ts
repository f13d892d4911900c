import { join } from 'node:path';
import { type MachineClock, machineClock, wake, WakeFile } from '@locks/core/machine';
import {
  mayStartWith,
  type RecordChange,
  type RecordPace,
  type RecordsRead,
  type RecordStore,
  type RecordWrite,
  type RecordWritten,
  type StoredRecord,
} from '@locks/record-protocol';
import { explained, isRetryableFileError, LockFolderError } from './lock-folder-error.ts';
import { LockFolder } from './lock-folder.ts';
import type { CheckedFileOptions } from './options.ts';
import { hasEnded } from './process-mark.ts';
import { ALPHABET, CLIENT, nameOfKey, namesIn, RecordFiles } from './record-files.ts';
import { FolderSweeper } from './folder-sweeper.ts';

/** How often this process looks whether the folder is still there, and who else uses it, in milliseconds. */
const LOOK_EVERY_MS = 1_000;
const CHECK_EVERY_MS = 10_000;
/** The longest pause of a process that others can wake, in milliseconds. */
const WOKEN_POLL_MS = 500;
const LIST_PAGE = 64;

/** Records as files of a folder, for the processes of one machine. Each call is a few short calls of the file system. */
export class FileStore implements RecordStore {
  readonly name = 'file';
  readonly reach = 'host';
  readonly minTtlMs = 20;
  readonly maxValueBytes = 8_000_000;
  readonly isSynchronous = true;
  /** All processes read one clock, to the microsecond. */
  readonly clock = { stepMs: 0, skewMs: 0 };
  readonly pace: RecordPace;
  readonly watch?: RecordStore['watch'];
  readonly #options: CheckedFileOptions;
  readonly #readClock: () => MachineClock;
  readonly #watchers = new Set<() => void>();
  readonly #paths = new Map<string, string>();
  #machine: MachineClock | undefined;
  #files: RecordFiles | undefined;
  #sweeper: FolderSweeper | undefined;
  #wakeFile: WakeFile | undefined;
  #client = '';
  #isClosed = false;
  #lookedAt = -Infinity;
  #checkedAt = -Infinity;

  /** @param readClock - given by tests of other machines' clocks */
  constructor(options: CheckedFileOptions, readClock: () => MachineClock = clockOfMachine) {
    const canBeWoken = (): boolean => this.tellsWhom;
    this.#options = options;
    this.#readClock = readClock;
    this.pace = {
      minPollMs: 1,
      waiterTtlMs: 2_000,
      get maxPollMs() {
        return canBeWoken() ? WOKEN_POLL_MS : options.maxPollMs;
      },
    };
    if (options.watch) this.watch = (_, changed, client) => this.#watch(changed, client);
  }

  get tellsWhom(): boolean {
    return this.#wakeFile?.works ?? false;
  }

  async read(keys: readonly string[]): Promise<RecordsRead> {
    return this.#attempt((files) => {
      const now = nowMs(files);
      return { now, records: keys.map((key) => this.#readOne(files, key)) };
    });
  }

  async write(write: RecordWrite): Promise<RecordWritten> {
    return this.#attempt((files) => {
      const version = this.#swap(files, write);
      const now = nowMs(files);
      if (version === undefined) {
        const present = this.#readOne(files, write.key) ?? 'absent';
        return { status: 'conflict', now, present };
      }
      for (const client of write.wakes ?? []) {
        // The heartbeat of a process calls it: it wakes itself until that has worked.
        if (client === this.#client) this.#wakeFile?.prepare();
        else wake(files.folder.values, client);
      }
      this.#sweeper?.wrote();
      return { status: 'written', version, now };
    });
  }

  async askTime(): Promise<number> {
    return this.#attempt(nowMs);
  }

  tokenFloor(): number {
    return this.#attempt(({ folder }) => folder.since + folder.clock.nowMicros());
  }

  async *list(prefix: string): AsyncGenerator<StoredRecord> {
    const names = this.#attempt(({ folder }) => namesIn(folder.keys) ?? []);
    const wanted = names.filter((name) => mayStartWith(name, prefix, ALPHABET));
    for (let start = 0; start < wanted.length; start += LIST_PAGE) {
      const page = wanted.slice(start, start + LIST_PAGE);
      yield* this.#attempt((files) =>
        page.flatMap((name) => files.read(join(files.folder.keys, name)) ?? []),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  isRetryable(error: unknown): boolean {
    return isRetryableFileError(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wakeFile?.close();
    this.#forget();
  }

  #readOne(files: RecordFiles, key: string): StoredRecord | undefined {
    const record = files.read(this.#pathOf(files, key));
    // A process that has ended waits for nothing.
    const isDead = record !== undefined && key.startsWith(CLIENT) && hasEnded(record.pointer.writer);
    return isDead ? undefined : record;
  }

  /** Returns the version that the record has now; `undefined`: it has another one than it must. */
  #swap(files: RecordFiles, { key, value, ifVersion, isIdle, heldUntilMs }: RecordWrite): string | undefined {
    const path = this.#pathOf(files, key);
    const from = ifVersion === undefined ? undefined : String(ifVersion);
    if (value !== undefined) {
      const written = { value, isIdle, ...(heldUntilMs !== undefined && { heldUntilMs }) };
      return from === undefined ? files.create(path, written) : files.replace(path, from, written);
    }
    if (from === undefined) return files.pointer(path) === undefined ? '' : undefined;
    return files.remove(path, from) ? '' : undefined;
  }

  #watch(changed: (change: RecordChange) => void, client: string): () => void {
    const watcher = (): void => changed({ wakes: [client] });
    this.#watchers.add(watcher);
    this.#client = client;
    // Without a folder there is nobody to be woken by.
    if (this.#files !== undefined)
      this.#wakeFile ??= new WakeFile(this.#files.folder.values, client, () => {
        for (const each of this.#watchers) each();
      });
    this.#wakeFile?.prepare();
    return () => this.#watchers.delete(watcher);
  }

  #pathOf({ folder }: RecordFiles, key: string): string {
    let path = this.#paths.get(key);
    if (path !== undefined) return path;
    path = join(folder.keys, nameOfKey(key));
    if (this.#paths.size >= 1_000) this.#paths.clear();
    this.#paths.set(key, path);
    return path;
  }

  /** Does something in the folder, which is looked at now and then. */
  #attempt<T>(act: (files: RecordFiles) => T): T {
    try {
      return act(this.#lookedAfter());
    } catch (error) {
      // The folder may have been deleted: the next call looks again.
      this.#lookedAt = -Infinity;
      throw explained(error, this.#options.folder);
    }
  }

  #lookedAfter(): RecordFiles {
    if (this.#isClosed) throw new Error('the locks of this folder are closed');
    const at = performance.now();
    if (this.#files !== undefined && at - this.#lookedAt < LOOK_EVERY_MS) return this.#files;
    if (this.#files?.isInPlace() === false) this.#forget();
    if (this.#files === undefined) {
      this.#machine ??= this.#readClock();
      this.#files = new RecordFiles(new LockFolder(this.#options, this.#machine), this.#options.shared);
      this.#sweeper = new FolderSweeper(this.#files);
      this.#checkedAt = at;
    } else if (at - this.#checkedAt > CHECK_EVERY_MS) {
      this.#files.folder.lookAgain();
      this.#checkedAt = at;
    }
    this.#lookedAt = at;
    return this.#files;
  }

  #forget(): void {
    this.#sweeper?.stop();
    this.#files?.values.close();
    this.#files = undefined;
    this.#paths.clear();
  }
}

function nowMs({ folder }: RecordFiles): number {
  return folder.clock.nowMicros() / 1_000;
}

function clockOfMachine(): MachineClock {
  return machineClock((says, cause) => new LockFolderError('NO_BOOT_ID', says, { cause }));
}
