import { SimulatedRedisError } from './reply.ts';
import { SortedSet } from './sorted-set.ts';

/** The value of a key, by its type. */
export type SimulatedValue =
  | { readonly type: 'string'; text: string }
  | { readonly type: 'hash'; readonly fields: Map<string, string> }
  | { readonly type: 'zset'; readonly members: SortedSet };

export type SimulatedType = SimulatedValue['type'];

/** A key's value, and when it ends: server ms, `undefined` for never. */
export interface KeyspaceEntry {
  readonly value: SimulatedValue;
  expiresAt: number | undefined;
}

type ValueOf<T extends SimulatedType> = Extract<SimulatedValue, { type: T }>;

/** The keys of one server. Time is given by the caller, in server ms: a key ends after its last millisecond. */
export class Keyspace {
  /** The keys that were written since the caller emptied this set. */
  readonly written = new Set<string>();
  readonly #entries = new Map<string, KeyspaceEntry>();

  get size(): number {
    return this.#entries.size;
  }

  keys(): readonly string[] {
    return [...this.#entries.keys()];
  }

  entry(key: string, now: number): KeyspaceEntry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt === undefined || now <= entry.expiresAt) return entry;
    this.delete(key);
    return undefined;
  }

  /** The value of a key; fails if it is of another type. */
  read<T extends SimulatedType>(key: string, type: T, now: number): ValueOf<T> | undefined {
    const value = this.entry(key, now)?.value;
    if (value !== undefined && value.type !== type) {
      throw new SimulatedRedisError('WRONGTYPE Operation against a key holding the wrong kind of value');
    }
    return value as ValueOf<T> | undefined;
  }

  /** The value of a key that is about to be changed in place. */
  change<T extends SimulatedType>(key: string, type: T, now: number): ValueOf<T> | undefined {
    const value = this.read(key, type, now);
    if (value !== undefined) this.written.add(key);
    return value;
  }

  put(key: string, value: SimulatedValue, expiresAt?: number): void {
    // A key that is written anew keeps its place, as its name keeps its hash; the order of `keys` matters to nobody.
    this.#entries.set(key, { value, expiresAt });
    this.written.add(key);
  }

  expire(key: string, entry: KeyspaceEntry, expiresAt: number | undefined): void {
    entry.expiresAt = expiresAt;
    this.written.add(key);
  }

  delete(key: string): boolean {
    if (!this.#entries.delete(key)) return false;
    this.written.add(key);
    return true;
  }

  clear(): void {
    for (const key of this.#entries.keys()) this.written.add(key);
    this.#entries.clear();
  }

  /** A copy of a key's entry, for a replica or for the disk; expired keys too, as they end on every server by themselves. */
  copyOf(key: string): KeyspaceEntry | undefined {
    const entry = this.#entries.get(key);
    return entry && { value: copyValue(entry.value), expiresAt: entry.expiresAt };
  }

  /** Sets a key to a copy that another keyspace gave. */
  restore(key: string, entry: KeyspaceEntry | undefined): void {
    if (entry === undefined) this.delete(key);
    else this.put(key, copyValue(entry.value), entry.expiresAt);
  }
}

function copyValue(value: SimulatedValue): SimulatedValue {
  switch (value.type) {
    case 'string':
      return { type: 'string', text: value.text };
    case 'hash':
      return { type: 'hash', fields: new Map(value.fields) };
    case 'zset':
      return { type: 'zset', members: value.members.copy() };
    default:
      return value satisfies never;
  }
}
