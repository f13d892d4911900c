import { isLockError } from '@locks/core';
import {
  invalidArgument,
  matching,
  mustBe,
  type OnceRecord,
  readOptions,
  readSlotEntry,
  type SlotEntry,
  slotEntryText,
} from '@locks/core/backend';

/** A store of texts with writes that compare fencing tokens, for {@link textRecord}. */
export interface TextStore {
  /** The text of a key; `undefined` or `null` where there is none. */
  get(key: string): Promise<string | null | undefined>;
  /** Writes a text under a token, in one step. Rejects with `LOCK_LOST` when a newer token wrote before. */
  set(key: string, value: string, token: bigint): Promise<void>;
}

// setup: import { textRecord } from '@locks/once'; import { fencedSet } from '@locks/redis-ioredis'; import { Redis } from 'ioredis'; const redis = new Redis();
/**
 * A record in a store of texts: the entry of a job is JSON under the key `once:<job>`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const record = textRecord({
 *   get: (key) => redis.get(key),
 *   set: (key, value, token) => fencedSet(redis, key, value, token),
 * });
 * ```
 */
export function textRecord(store: TextStore): OnceRecord {
  if (!isTextStore(store)) throw mustBe('textRecord(): the store', GET_AND_SET, store);
  // Another property of an object literal would be a mistaken option. An instance of a class may have any members.
  if (Object.getPrototypeOf(Object.getPrototypeOf(store) ?? {}) === null)
    readOptions('textRecord()', store, TEXT_STORE);
  return {
    async read(job) {
      const text = await store.get(keyOf(job));
      return text === undefined || text === null ? undefined : parse(job, text);
    },
    async write(job, entry) {
      await store.set(keyOf(job), slotEntryText(entry), entry.token);
      return true;
    },
  };
}

const TEXT_STORE = { get: (value: unknown) => value, set: (value: unknown) => value };

export const GET_AND_SET = 'an object with the functions get and set';

/** Whether a value looks like a store of texts, of records or of results. */
export function isTextStore(value: unknown): value is TextStore {
  const { get, set } = (value ?? {}) as Partial<TextStore>;
  return typeof get === 'function' && typeof set === 'function';
}

export const readRecord = matching('an object with the functions read and write', isRecord);

/** Reads an entry, and checks what a record of the user's own gave. */
export async function readEntry(record: OnceRecord, job: string): Promise<SlotEntry | undefined> {
  const entry: unknown = await record.read(job);
  if (entry === undefined) return undefined;
  if (isEntry(entry)) return entry;
  throw mustBe(`once(): what record.read gives of ${job}`, 'undefined, or { slot, state, token, … }', entry);
}

/** Writes an entry; gives `false` where a newer token wrote before. */
export async function writeEntry(record: OnceRecord, job: string, entry: SlotEntry): Promise<boolean> {
  let written: unknown;
  try {
    written = await record.write(job, entry);
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return false;
    throw error;
  }
  // A forgotten result would count as a refusal, or as a success that was none.
  if (typeof written !== 'boolean') {
    throw mustBe(`once(): what record.write gives of ${job}`, 'whether the entry was written', written);
  }
  return written;
}

function keyOf(job: string): string {
  return `once:${job}`;
}

function parse(job: string, text: string): SlotEntry {
  try {
    return readSlotEntry(text);
  } catch (error) {
    if (isLockError(error)) throw error;
    throw invalidArgument(`once(): the entry of ${job} cannot be read: it was not written by textRecord().`);
  }
}

function isRecord(value: unknown): value is OnceRecord {
  const { read, write } = (value ?? {}) as Partial<OnceRecord>;
  return typeof read === 'function' && typeof write === 'function';
}

function isEntry(value: unknown): value is SlotEntry {
  const { slot, state, token } = (value ?? {}) as Partial<SlotEntry>;
  return (
    typeof slot === 'string' &&
    slot !== '' &&
    (state === 'begun' || state === 'done') &&
    typeof token === 'bigint'
  );
}
