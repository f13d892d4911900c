import {
  type SlotStore,
  optional,
  type OptionTable,
  readOptions,
  readSlotEntry,
  type ResultStore,
  slotEntryText,
} from '@locks/core/backend';
import { fencedSetThrough } from './fenced-set.ts';
import { scripts } from './generated/scripts.ts';
import { encodeBareName, readPrefix } from './keys.ts';
import type { RedisPort } from './port.ts';
import { isQueued, listIn, namingUnexpectedReply, UnexpectedReplyError, wholeIn } from './reply-shape.ts';
import { mayAlwaysRepeat, runScript } from './run-script.ts';

/** The options of `redisSlots` and `redisResults`. */
export interface RedisSlotsOptions {
  /**
   * The prefix of the locks: the tokens of another prefix count from elsewhere, so that what is written under them has keys of its own.
   * @defaultValue `'lock:'`
   */
  readonly prefix?: string | undefined;
}

const DEFAULT_PREFIX = 'lock:';
const TABLE = { prefix: optional(readPrefix, DEFAULT_PREFIX) } satisfies OptionTable<RedisSlotsOptions>;
/** How long the token of a result is kept after the result: longer than a writer that lost its lock can be late. */
const FENCE_MS = 3_600_000;

/**
 * The slot store of `once` of `@locks/once`: the entry of a name is JSON under the key `once:<name>`, or `once|<prefix>|<name>`.
 *
 * @param what - the function that the user called, for the message of an error
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function redisSlotsThrough(
  port: RedisPort,
  options: RedisSlotsOptions | undefined,
  what = 'redisSlots()',
): SlotStore {
  const start = keyStart('once', options, what);
  return {
    async read(name) {
      const key = port.keyPrefix + start + encodeBareName(name);
      const reply = await namingUnexpectedReply(what, port.name, async () =>
        listIn(await runScript(port, scripts.readWithTime, [key], [], mayAlwaysRepeat), 3),
      );
      const [text, seconds, microseconds] = reply.map(String) as [string, string, string];
      return {
        entry: text === '' ? undefined : readSlotEntry(text),
        storeTime: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
      };
    },
    async write(name, entry) {
      await fencedSetThrough(
        port,
        start + encodeBareName(name),
        slotEntryText(entry),
        entry.token,
        undefined,
      );
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
  options: RedisSlotsOptions | undefined,
  what = 'redisResults()',
): ResultStore {
  const start = keyStart('coalesce', options, what);
  return {
    get: (key) => get(port, start + encodeBareName(key), what),
    set: (key, value, token, ttlMs) =>
      fencedSetThrough(port, start + encodeBareName(key), value, token, {
        ttlMs,
        fenceTtlMs: ttlMs + FENCE_MS,
      }),
  };
}

/** What all keys begin with. Their names are encoded as bare ones, so that no key is that of a lock under another prefix. */
function keyStart(kind: string, options: RedisSlotsOptions | undefined, what: string): string {
  const { prefix } = readOptions(what, options, TABLE);
  return prefix === DEFAULT_PREFIX ? `${kind}:` : `${kind}|${prefix}|`;
}

function get(port: RedisPort, key: string, what: string): Promise<string | null | undefined> {
  return namingUnexpectedReply(what, port.name, () => readValue(port, key));
}

async function readValue(port: RedisPort, key: string): Promise<string | null | undefined> {
  const prefixed = port.keyPrefix + key;
  const reply = await port.send(prefixed, ['GET', prefixed]);
  // A value may be this text too: within an open `MULTI`, EXISTS is answered by no number.
  if (isQueued(reply)) wholeIn(await port.send(prefixed, ['EXISTS', prefixed]));
  if (reply === null || reply === undefined || typeof reply === 'string') return reply;
  throw new UnexpectedReplyError(reply);
}
