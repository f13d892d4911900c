import { isLockError, LockError } from '@locks/core';
import {
  invalidArgument,
  matching,
  mustBe,
  type SlotStore,
  readOptions,
  readSlotEntry,
  type SlotAnswer,
  type SlotEntry,
  slotEntryText,
} from '@locks/core/backend';

/** A store of texts with writes that compare fencing tokens, for {@link textSlots}. */
export interface TextStore {
  /** The text of a key; `undefined` or `null` where there is none. */
  get(key: string): Promise<string | null | undefined>;
  /** Writes a text under a token, in one step. Rejects with `LOCK_LOST` when a newer token wrote before. */
  set(key: string, value: string, token: bigint): Promise<void>;
}

// setup: import { textSlots } from '@locks/once'; import { fencedSet } from '@locks/redis-ioredis'; import { Redis } from 'ioredis'; const redis = new Redis();
/**
 * A slot store in a store of texts: an entry is JSON under the key `once:<name>`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const slots = textSlots({
 *   get: (key) => redis.get(key),
 *   set: (key, value, token) => fencedSet(redis, key, value, token),
 * });
 * ```
 */
export function textSlots(store: TextStore): SlotStore {
  if (!isTextStore(store)) throw mustBe('textSlots(): the store', GET_AND_SET, store);
  // Another property of an object literal would be a mistaken option. An instance of a class may have any members.
  if (Object.getPrototypeOf(Object.getPrototypeOf(store) ?? {}) === null)
    readOptions('textSlots()', store, TEXT_STORE);
  return {
    async read(name) {
      const text = await store.get(keyOf(name));
      const entry = text === undefined || text === null ? undefined : parse(name, text);
      return { entry, storeTime: undefined };
    },
    async write(name, entry) {
      await store.set(keyOf(name), slotEntryText(entry), entry.token);
      return true;
    },
  };
}

const TEXT_STORE = { get: (value: unknown) => value, set: (value: unknown) => value };

export const GET_AND_SET = 'an object with the functions get and set';

/** Whether a value looks like a store of texts, of slots or of results. */
export function isTextStore(value: unknown): value is TextStore {
  const { get, set } = (value ?? {}) as Partial<TextStore>;
  return typeof get === 'function' && typeof set === 'function';
}

export const readSlots = matching('an object with the functions read and write', isSlotStore);

/** Reads an entry, and checks what a slot store of the user's own gave. */
export async function readEntry(slots: SlotStore, name: string): Promise<SlotAnswer> {
  const answer: unknown = await slots.read(name);
  if (isAnswer(answer)) return answer;
  throw mustBe(
    `once(): what slots.read gives of ${name}`,
    '{ entry, storeTime }, where an entry is { slot, state, token, … }',
    answer,
  );
}

/** Writes an entry; gives `false` where a newer token wrote before. */
export async function writeEntry(slots: SlotStore, name: string, entry: SlotEntry): Promise<boolean> {
  let written: unknown;
  try {
    written = await slots.write(name, entry);
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return false;
    throw error;
  }
  // A forgotten result would count as a refusal, or as a success that was none.
  if (typeof written !== 'boolean') {
    throw mustBe(`once(): what slots.write gives of ${name}`, 'whether the entry was written', written);
  }
  return written;
}

/** The error for a lock whose tokens are behind that of the slot store. */
export function overtakenBefore(name: string, caller: string): LockError {
  return new LockError(
    'LOCK_LOST',
    `${caller}: the slot store of the work ${name} was written under a newer token than that of this lock; nothing was done. Another machine ` +
      'has the lock by now, or the tokens of the lock have gone back; then delete the entry.',
    { lockName: name, reason: 'taken-over' },
  );
}

function keyOf(name: string): string {
  return `once:${name}`;
}

function parse(name: string, text: string): SlotEntry {
  try {
    return readSlotEntry(text);
  } catch (error) {
    if (isLockError(error)) throw error;
    throw invalidArgument(`once(): the entry of ${name} cannot be read: it was not written by textSlots().`);
  }
}

function isSlotStore(value: unknown): value is SlotStore {
  const { read, write } = (value ?? {}) as Partial<SlotStore>;
  return typeof read === 'function' && typeof write === 'function';
}

function isAnswer(value: unknown): value is SlotAnswer {
  if (typeof value !== 'object' || value === null) return false;
  const { entry, storeTime } = value as Partial<SlotAnswer>;
  return (
    'entry' in value &&
    (entry === undefined || isEntry(entry)) &&
    (storeTime === undefined || Number.isFinite(storeTime))
  );
}

function isEntry(value: unknown): value is SlotEntry {
  const { slot, state, token } = (value ?? {}) as Partial<SlotEntry>;
  return (
    typeof slot === 'string' &&
    slot !== '' &&
    (state === 'begun' || state === 'done' || state === 'reset') &&
    typeof token === 'bigint'
  );
}
