import { LockError } from '@locks/core';
import { scripts } from './generated/scripts.ts';
import { invalidArgument } from './invalid-argument.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import { slotOf, tagOf } from './slot.ts';

export interface FencedSetOptions {
  /** How long the value lasts; `'keep'`: as long as it would have anyway. @defaultValue for ever */
  readonly ttlMs?: number | 'keep';
  /**
   * How long the newest token is remembered after a write: longer than any writer can be late. @defaultValue for ever,
   * also where the value has a `ttlMs`
   */
  readonly fenceTtlMs?: number;
}

/**
 * Writes a value with the token of the lease that protects it, in one step: nothing is written where a newer token
 * wrote before. The value stands alone under its key; the newest token under `locks:fence:{…}:<key>`, in the same slot.
 * Cf. M. Kleppmann, "How to do distributed locking".
 *
 * @throws `LOCK_LOST` with reason `taken-over` when a newer token wrote before: nothing was written.
 * `LOCK_INVALID_ARGUMENT` for a bad key, value, token or option; the client's own errors as they are
 */
export async function fencedSetThrough(
  port: RedisPort,
  key: string,
  value: string,
  token: bigint,
  options: FencedSetOptions = {},
): Promise<void> {
  if (typeof key !== 'string' || key === '')
    throw invalidArgument('fencedSet: key must be a non-empty string');
  if (typeof value !== 'string')
    throw invalidArgument(`fencedSet: value must be a string, not ${typeof value}`);
  if (typeof token !== 'bigint' || token <= 0n) {
    throw invalidArgument(
      `fencedSet: token is ${String(token)}: pass the fencingToken of a lease, a bigint above 0`,
    );
  }
  const { ttlMs, fenceTtlMs } = options;
  if (ttlMs !== 'keep') checkMs('ttlMs', ttlMs);
  checkMs('fenceTtlMs', fenceTtlMs);
  port.assertUsable();
  const prefixed = port.keyPrefix + key;
  const fence = `locks:fence:{${tagOf(slotOf(hashedPart(prefixed)))}}:${prefixed}`;
  const args = [String(token), value, String(ttlMs ?? ''), String(fenceTtlMs ?? '')];
  const reply = await runScript(port, scripts.fencedSet, [prefixed, fence], args);
  if (Number(reply) === 1) return;
  throw new LockError(
    'LOCK_LOST',
    `Nothing was written to ${key}: it was written under token ${String(reply)}, which is newer than ${token}. ` +
      'Another holder has the lock by now, or had it since.',
    { backend: port.name, reason: 'taken-over' },
  );
}

function checkMs(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value > 0)) return;
  throw invalidArgument(`fencedSet: ${name} is ${String(value)}: use a whole number of milliseconds above 0`);
}

/** The part of a key that chooses its slot in a cluster: between the first braces, if there is something. */
function hashedPart(key: string): string {
  const from = key.indexOf('{') + 1;
  const to = from === 0 ? -1 : key.indexOf('}', from);
  return to > from ? key.slice(from, to) : key;
}
