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
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisRecordThrough(port: RedisPort, options?: RedisRecordOptions): OnceRecord {
  const { prefix } = readOptions('redisRecord()', options, TABLE);
  return {
    async read(job) {
      const text = await get(port, keyOf('once', prefix, job));
      return text === null || text === undefined ? undefined : readSlotEntry(text);
    },
    async write(job, entry) {
      await fencedSetThrough(port, keyOf('once', prefix, job), slotEntryText(entry), entry.token);
      return true;
    },
  };
}

/**
 * The store of `coalesce` of `@locks/once`: a result is under the key `coalesce:<key>`, or `coalesce|<prefix>|<key>`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisResultsThrough(port: RedisPort, options?: RedisRecordOptions): ResultStore {
  const { prefix } = readOptions('redisResults()', options, TABLE);
  return {
    get: (key) => get(port, keyOf('coalesce', prefix, key)),
    set: (key, value, token, ttlMs) =>
      fencedSetThrough(port, keyOf('coalesce', prefix, key), value, token, {
        ttlMs,
        fenceTtlMs: ttlMs + FENCE_MS,
      }),
  };
}

function keyOf(kind: string, prefix: string, name: string): string {
  return prefix === DEFAULT_PREFIX ? `${kind}:${name}` : `${kind}|${prefix}|${name}`;
}

async function get(port: RedisPort, key: string): Promise<string | null | undefined> {
  const prefixed = port.keyPrefix + key;
  return (await port.send(prefixed, ['GET', prefixed])) as string | null | undefined;
}
