import { LockError, type LockEvents } from '@locks/core';
import { scripts } from './generated/scripts.ts';
import {
  mustBe,
  optional,
  type OptionReader,
  type OptionTable,
  readOptions,
  wholeNumber,
} from '@locks/core/backend';
import { channel } from 'node:diagnostics_channel';
import type { RedisPort } from './port.ts';
import { namingUnexpectedReply, partsOf, tokenIn, UnexpectedReplyError } from './reply-shape.ts';
import { mayAlwaysRepeat, runScript } from './run-script.ts';
import { slotOf, tagOf } from './slot.ts';

/** The lifetimes of a fenced value and of its token. */
export interface FencedSetOptions {
  /** The lifetime of the value in milliseconds; `'keep'` leaves the expiry as it is. @defaultValue for ever */
  readonly ttlMs?: number | 'keep';
  /**
   * The time in milliseconds for which the newest token is kept after a write: longer than any writer can be late.
   * @defaultValue for ever, also where the value has a `ttlMs`
   */
  readonly fenceTtlMs?: number;
}

const rejectedChannel = channel('locks:fence-rejected');
const spanMs = wholeNumber(1, Number.MAX_SAFE_INTEGER, 'milliseconds');
const spanOrKeep: OptionReader<number | 'keep'> = (value, what) =>
  value === 'keep' ? value : spanMs(value, what);
const TABLE = {
  ttlMs: optional(spanOrKeep),
  fenceTtlMs: optional(spanMs),
} satisfies OptionTable<FencedSetOptions>;

/**
 * Writes a value with the token of the lease that protects it, in one step, unless a newer token wrote before. The value
 * stands alone under its key, the newest token under `locks:fence:{…}:<key>`, in the same slot.
 * Cf. M. Kleppmann, "How to do distributed locking".
 *
 * @throws `LOCK_LOST` with reason `taken-over` when a newer token wrote before: nothing was written.
 * `LOCK_INVALID_ARGUMENT` for a bad key, value, token or option; `LOCK_BACKEND` for a client with an open `MULTI`; the client's
 * own errors as they are
 */
export async function fencedSetThrough(
  port: RedisPort,
  key: string,
  value: string,
  token: bigint,
  options: FencedSetOptions | undefined,
): Promise<void> {
  if (typeof key !== 'string' || key === '') throw mustBe('fencedSet(): key', 'a non-empty string', key);
  if (typeof value !== 'string') throw mustBe('fencedSet(): value', 'a string', value);
  if (typeof token !== 'bigint' || token <= 0n) {
    throw mustBe('fencedSet(): token', 'the fencingToken of a lease, a bigint above 0', token);
  }
  const { ttlMs, fenceTtlMs } = readOptions('fencedSet()', options, TABLE);
  const prefixed = port.keyPrefix + key;
  const fence = `locks:fence:{${tagOf(slotOf(hashedPart(prefixed)))}}:${prefixed}`;
  const args = [String(token), value, String(ttlMs ?? ''), String(fenceTtlMs ?? '')];
  const newest = await namingUnexpectedReply('fencedSet()', port.name, async () =>
    newerTokenIn(await runScript(port, scripts.fencedSet, [prefixed, fence], args, mayAlwaysRepeat)),
  );
  if (newest === undefined) return;
  const event = { backend: port.name, target: key, token };
  rejectedChannel.publish(event satisfies LockEvents['locks:fence-rejected']);
  throw new LockError(
    'LOCK_LOST',
    `Nothing was written to ${key}: it was written under token ${newest}, which is newer than ${token}. ` +
      'Another holder has the lock by now, or had it since.',
    { backend: port.name, reason: 'taken-over' },
  );
}

/** The newer token in the reply of the script; `undefined`: the value was written. */
function newerTokenIn(reply: unknown): bigint | undefined {
  const [word, newest] = partsOf(reply);
  switch (word) {
    case 'written':
      return undefined;
    case 'refused':
      return tokenIn(newest);
    default:
      throw new UnexpectedReplyError(reply);
  }
}

/** The part of a key that chooses its slot in a cluster: the text between the first braces, if there is some. */
function hashedPart(key: string): string {
  const from = key.indexOf('{') + 1;
  const to = from === 0 ? -1 : key.indexOf('}', from);
  return to > from ? key.slice(from, to) : key;
}
