import {
  type OnceRecord,
  optional,
  type OptionTable,
  readOptions,
  readSlotEntry,
  type ResultStore,
  slotEntryText,
} from '@locks/core/backend';
import { fencedSetThrough } from './fenced-set.ts';
import { readPrefix } from './keys.ts';
import type { RedisPort } from './port.ts';

/** The options of `redisRecord` and `redisResults`. */
export interface RedisRecordOptions {
  /**
   * The prefix of the locks: the tokens of another prefix count from elsewhere, so that what is written under them has keys of its own.
   * @defaultValue `'lock:'`
   */
  readonly prefix?: string | undefined;
}

const DEFAULT_PREFIX = 'lock:';
const TABLE = { prefix: optional(readPrefix, DEFAULT_PREFIX) } satisfies OptionTable<RedisRecordOptions>;
/** How long the token of a result is kept after the result: longer than a writer that lost its lock can be late. */
const FENCE_MS = 3_600_000;

/**
 * The record of `once` of `@locks/once`: the entry of a job is JSON under the key `once:<job>`, or `once|<prefix>|<job>`.
 *
 * @param what - the function that the user called, for the message of an error
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisRecordThrough(
  port: RedisPort,
  options?: RedisRecordOptions,
  what = 'redisRecord()',
): OnceRecord {
  const start = keyStart('once', options, what);
  return {
    async read(job) {
      const text = await get(port, start + job);
      return text === null || text === undefined ? undefined : readSlotEntry(text);
    },
    async write(job, entry) {
      await fencedSetThrough(port, start + job, slotEntryText(entry), entry.token);
      return true;
    },
  };
}

/**
 * The store of `coalesce` of `@locks/once`: a result is under the key `coalesce:<key>`, or `coalesce|<prefix>|<key>`.
 *
 * @param what - the function that the user called, for the message of an error
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisResultsThrough(
  port: RedisPort,
  options?: RedisRecordOptions,
  what = 'redisResults()',
): ResultStore {
  const start = keyStart('coalesce', options, what);
  return {
    get: (key) => get(port, start + key),
    set: (key, value, token, ttlMs) =>
      fencedSetThrough(port, start + key, value, token, {
        ttlMs,
        fenceTtlMs: ttlMs + FENCE_MS,
      }),
  };
}

/** What all keys begin with. */
function keyStart(kind: string, options: RedisRecordOptions | undefined, what: string): string {
  const { prefix } = readOptions(what, options, TABLE);
  return prefix === DEFAULT_PREFIX ? `${kind}:` : `${kind}|${prefix}|`;
}

async function get(port: RedisPort, key: string): Promise<string | null | undefined> {
  const prefixed = port.keyPrefix + key;
  return (await port.send(prefixed, ['GET', prefixed])) as string | null | undefined;
}
