import type { RecordVersion, RecordWrite, StoredRecord } from '@locks/record-protocol';

/** A state of a record: `undefined`: there was none. */
interface PastState {
  /** True time of the write. */
  readonly from: number;
  readonly record: StoredRecord | undefined;
}

const NOTHING = new Uint8Array();
/** States of before this time are of no use to anybody, in milliseconds. */
const KEPT_MS = 3_000;

export type MakeVersion = (count: number, value: Uint8Array) => RecordVersion;

/** Records that are compared and swapped one by one, outside of all processes. A step is whole. */
export class VersionedRecords {
  /** The states of each record, the present one last. */
  readonly #states = new Map<string, PastState[]>();
  readonly #now: () => number;
  readonly #versions: MakeVersion;
  /** A version that is counted never comes back, also not after a loss of data. */
  #written = 0;

  /** @param now - true time, in milliseconds */
  constructor(now: () => number, versions: MakeVersion) {
    this.#now = now;
    this.#versions = versions;
  }

  keys(): string[] {
    return [...this.#states.keys()].filter((key) => this.read(key) !== undefined);
  }

  read(key: string): StoredRecord | undefined {
    return this.#states.get(key)?.at(-1)?.record;
  }

  /** The record as it was at a true time of before. */
  readAt(key: string, at: number): StoredRecord | undefined {
    const states = this.#states.get(key);
    // What was forgotten is older than all that is asked for, but where nothing was written since.
    return (states?.findLast(({ from }) => from <= at) ?? states?.[0])?.record;
  }

  /** Returns the record that was written, or `undefined` where the record has another version. */
  write({ key, value, ifVersion }: RecordWrite): { readonly version: RecordVersion } | undefined {
    if (this.read(key)?.version !== ifVersion) return undefined;
    this.#written += 1;
    const version = this.#versions(this.#written, value ?? NOTHING);
    // The writer may use its bytes for something else.
    this.#put(key, value && { value: Uint8Array.from(value), version });
    return { version };
  }

  /** Takes back what was written at the true time `since` and later. Returns the keys that this changed. */
  loseSince(since: number): string[] {
    const lost: string[] = [];
    for (const [key, states] of this.#states) {
      const left = states.filter(({ from }) => from < since);
      if (left.length === states.length) continue;
      this.#states.set(key, left);
      lost.push(key);
    }
    return lost;
  }

  #put(key: string, record: StoredRecord | undefined): void {
    const now = this.#now();
    const states = this.#states.get(key) ?? [{ from: Number.NEGATIVE_INFINITY, record: undefined }];
    const firstOfUse = states.findLastIndex(({ from }) => from <= now - KEPT_MS);
    this.#states.set(key, [...states.slice(Math.max(0, firstOfUse)), { from: now, record }]);
  }
}
