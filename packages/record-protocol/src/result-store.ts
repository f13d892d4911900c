import { LockError } from '@locks/core';
import type { ResultStore } from '@locks/core/backend';
import { FencedTexts, type TextRecordStore } from './fenced-texts.ts';

/** A store may delete an idle record after a day. The token of a result is kept for longer than a writer that lost its lock can be late. */
const DELETED_AFTER_MS = 86_400_000;
const FENCE_MS = 3_600_000;

/**
 * The store of `coalesce` of `@locks/once` in a store that compares and swaps: a result is under the key `<prefix>result/<key>`, and ends by
 * the time of the store, to the step of its clock.
 *
 * @param prefix - that of the locks, checked
 * @param what - the function that the user called, for the message of an error
 */
export function resultsIn(store: TextRecordStore, prefix: string, what: string): ResultStore {
  const texts = new FencedTexts(store, `${prefix}result/`, what);
  return {
    async get(key) {
      const { found } = await texts.read(key);
      if (found?.endsAt === undefined || found.endsAt <= texts.now) return undefined;
      return found.text;
    },
    async set(key, value, token, ttlMs) {
      const made = (): { text: string; token: bigint; endsAt: number } => {
        return { text: value, token, endsAt: Math.ceil(texts.now + ttlMs) };
      };
      if (await texts.write(key, made, ttlMs + FENCE_MS <= DELETED_AFTER_MS)) return;
      const says = `${what}: the result of ${key} was not written: there is one under a token newer than ${token}.`;
      throw new LockError('LOCK_LOST', says, { lockName: key, reason: 'taken-over' });
    },
  };
}
