import { Buffer } from 'node:buffer';
import type { IKeyValue } from 'etcd3';

/** A key as it was written last. Keys are text of one character for each byte, which sorts as the bytes do. */
export interface StoredKey {
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  /** `0`: none. */
  readonly lease: string;
}

export interface KeyEvent {
  readonly revision: number;
  readonly key: string;
  /** What was written; `undefined`: the key was deleted. */
  readonly written: StoredKey | undefined;
  readonly before: StoredKey | undefined;
}

/** From `from` up to, not including, `to`. */
export interface KeySpan {
  readonly from: string;
  readonly to: string;
}

export const NO_LEASE = '0';
/** Behind every key. */
const LAST = '\u{ffff}';

export function spanOf({
  key,
  range_end: end,
}: {
  readonly key?: Buffer | string;
  readonly range_end?: Buffer | string;
}): KeySpan {
  const from = textOf(key);
  const to = textOf(end);
  if (to === '') return { from, to: `${from}\0` };
  return { from, to: to === '\0' ? LAST : to };
}

export function contains({ from, to }: KeySpan, key: string): boolean {
  return key >= from && key < to;
}

export function textOf(bytes: Buffer | string | undefined): string {
  return bytes === undefined ? '' : Buffer.from(bytes).toString('latin1');
}

export function keyValueOf({
  key,
  value,
  createRevision,
  modRevision,
  version,
  lease,
}: StoredKey): IKeyValue {
  return {
    key: Buffer.from(key, 'latin1'),
    create_revision: String(createRevision),
    mod_revision: String(modRevision),
    version: String(version),
    value,
    lease,
  };
}

/** The keys of a server with their revisions, and what was written since the last compaction. */
export class VersionedKeys {
  readonly #keys = new Map<string, StoredKey>();
  #sorted: readonly string[] | undefined;
  #history: KeyEvent[] = [];
  #pending: KeyEvent[] = [];
  #revision = 1;
  #compacted = 0;

  get revision(): number {
    return this.#revision;
  }

  /** What was written before this revision is told to nobody any more. */
  get compacted(): number {
    return this.#compacted;
  }

  get(key: string): StoredKey | undefined {
    return this.#keys.get(key);
  }

  /** In the order of the keys. */
  within(span: KeySpan): StoredKey[] {
    this.#sorted ??= [...this.#keys.keys()].toSorted();
    return this.#sorted.filter((key) => contains(span, key)).map((key) => this.#keys.get(key) as StoredKey);
  }

  put(key: string, value: Buffer, lease: string): void {
    const before = this.#keys.get(key);
    const modRevision = this.#revision + 1;
    const { createRevision = modRevision, version = 0 } = before ?? {};
    const written: StoredKey = { key, value, createRevision, modRevision, version: version + 1, lease };
    this.#keys.set(key, written);
    this.#wrote(key, written, before);
  }

  delete(key: string): void {
    const before = this.#keys.get(key);
    if (!this.#keys.delete(key)) return;
    this.#wrote(key, undefined, before);
  }

  /** Ends a transaction: all that it wrote has one revision. Returns what it wrote. */
  commit(): readonly KeyEvent[] {
    const events = this.#pending;
    if (events.length === 0) return events;
    this.#pending = [];
    this.#revision += 1;
    this.#history.push(...events);
    return events;
  }

  /** The revision that an answer of the transaction under way names. */
  get answered(): number {
    return this.#revision + Math.sign(this.#pending.length);
  }

  since(revision: number): readonly KeyEvent[] {
    return this.#history.filter((event) => event.revision >= revision);
  }

  compact(): void {
    this.#compacted = this.#revision;
    this.#history = this.#history.filter(({ revision }) => revision === this.#compacted);
  }

  #wrote(key: string, written: StoredKey | undefined, before: StoredKey | undefined): void {
    this.#pending.push({ revision: this.#revision + 1, key, written, before });
    if (written === undefined || before === undefined) this.#sorted = undefined;
  }
}
