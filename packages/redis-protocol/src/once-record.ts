import {
  type OnceRecord,
  optional,
  type OptionTable,
  readOptions,
  readSlotEntry,
  slotEntryText,
} from '@locks/core/backend';
import { fencedSetThrough } from './fenced-set.ts';
import { readPrefix } from './keys.ts';
import type { RedisPort } from './port.ts';

/** The options of `redisRecord`. */
export interface RedisRecordOptions {
  /**
   * The prefix of the locks: the tokens of another prefix count from elsewhere, so that its records have keys of their own.
   * @defaultValue `'lock:'`
   */
  readonly prefix?: string | undefined;
}

const DEFAULT_PREFIX = 'lock:';
const TABLE = { prefix: optional(readPrefix, DEFAULT_PREFIX) } satisfies OptionTable<RedisRecordOptions>;

/**
 * The record of `once` of `@locks/once`: the entry of a job is JSON under the key `once:<job>`, or `once|<prefix>|<job>`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisRecordThrough(port: RedisPort, options?: RedisRecordOptions): OnceRecord {
  const { prefix } = readOptions('redisRecord()', options, TABLE);
  const keyOf = (job: string): string =>
    prefix === DEFAULT_PREFIX ? `once:${job}` : `once|${prefix}|${job}`;
  return {
    async read(job) {
      const key = port.keyPrefix + keyOf(job);
      const text = (await port.send(key, ['GET', key])) as string | null | undefined;
      return text === null || text === undefined ? undefined : readSlotEntry(text);
    },
    async write(job, entry) {
      await fencedSetThrough(port, keyOf(job), slotEntryText(entry), entry.token);
      return true;
    },
  };
}
