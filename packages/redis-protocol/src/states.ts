import type { Holder, ResourceState, Waiter } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { decodeName, holdersKey, keysOfLock, type ResourceKeys } from './keys.ts';
import { modeOfLimit } from './mode.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import { parseMark, parseMember, parseShare, parseValue } from './value.ts';

const exclusive = { kind: 'exclusive' } as const;
const inspectionsAtOnce = 64;

/**
 * The holders that `inspect` and `force-release` tell: `[value of the lock key, pttl, server ms, shares]`. A stranger's
 * lock is a holder too: its whole value stands for the acquisition id.
 */
export function holdersOf([value, pttl, now, shares]: readonly unknown[]): Holder[] {
  if (typeof value !== 'string') return [];
  const limit = parseMark(value);
  if (limit !== undefined) return sharesOf(limit, Number(now), shares as readonly unknown[]);
  const own = parseValue(value);
  const expiresInMs = Number(pttl) >= 0 ? { expiresInMs: Number(pttl) } : {};
  if (own === undefined) return [{ acquisitionId: value, mode: exclusive, ...expiresInMs }];
  const { id, label, token } = own;
  return [{ acquisitionId: id, mode: exclusive, ...described(label, token, Number(now)), ...expiresInMs }];
}

function sharesOf(limit: number, nowMs: number, listed: readonly unknown[]): Holder[] {
  const holders: Holder[] = [];
  for (let at = 0; at < listed.length; at += 2) {
    const share = parseShare(String(listed[at + 1]));
    if (share === undefined || share.endsAt <= nowMs) continue;
    const { endsAt, label, token, weight } = share;
    holders.push({
      acquisitionId: String(listed[at]),
      mode: modeOfLimit(limit, weight),
      ...described(label, token, nowMs),
      expiresInMs: endsAt - nowMs,
    });
  }
  return holders.sort((a, b) => Number((a.fencingToken ?? 0n) - (b.fencingToken ?? 0n)));
}

function described(label: string, fencingToken: bigint, nowMs: number): Partial<Holder> {
  // A token is the server's time in µs when the lock was got, or shortly ahead of it.
  const heldForMs = Math.max(0, nowMs - Number(fencingToken) / 1000);
  return { fencingToken, ...(label === '' ? {} : { label }), heldForMs };
}

export async function inspect(port: RedisPort, keys: ResourceKeys, resource: string): Promise<ResourceState> {
  const reply = await runScript(port, scripts.inspect, [keys.lock, keys.queue, holdersKey(keys)], []);
  const [value, , now, , limit, ...queue] = reply as unknown[];
  const nowMs = Number(now);
  const marked = typeof value === 'string' ? parseMark(value) : undefined;
  const waiters: Waiter[] = [];
  for (let at = 0; at < queue.length; at += 2) {
    const { id, weight, label } = parseMember(String(queue[at]));
    const waitingForMs = Math.max(0, nowMs - Number(queue[at + 1]) / 1000);
    const mode = weight === undefined ? exclusive : modeOfLimit(weight && (marked || -Number(limit)), weight);
    waiters.push({ acquisitionId: id, mode, ...(label === '' ? {} : { label }), waitingForMs });
  }
  return { resource, holders: holdersOf(reply as unknown[]), waiters };
}

/** Every resource below `prefix`, found by two scans of each master: queues, some of locks that are free, and lock keys. */
export async function* list(
  port: RedisPort,
  keyPrefix: string,
  prefix: string,
): AsyncIterable<ResourceState> {
  // Up to the first character that may stand encoded; the rest is compared after decoding.
  const plain = escapeGlob(keyPrefix + (/^[^{}%]*/.exec(prefix)?.[0] ?? ''));
  const seen = new Set<string>();
  // Queues first: a lock that is handed over meanwhile is then found by its key.
  for (const [pattern, ends] of [
    [`{${plain}*}:q`, ['{', '}:q']],
    [`${plain}*`, ['', '']],
  ] as const) {
    for (const send of port.masters()) {
      let cursor = '0';
      do {
        const [next, found] = (await send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000'])) as [
          unknown,
          string[],
        ];
        cursor = String(next);
        const fresh: [string, string][] = [];
        for (const key of found) {
          const lock = key.slice(ends[0].length, key.length - ends[1].length);
          const name = decodeName(lock.slice(keyPrefix.length));
          if (name === undefined || name === '' || !name.startsWith(prefix) || seen.has(name)) continue;
          seen.add(name);
          fresh.push([lock, name]);
        }
        for (let at = 0; at < fresh.length; at += inspectionsAtOnce) {
          const part = fresh.slice(at, at + inspectionsAtOnce);
          const states = await Promise.all(part.map(([lock, name]) => inspectString(port, lock, name)));
          for (const state of states)
            if (state && state.holders.length + state.waiters.length > 0) yield state;
        }
      } while (cursor !== '0');
    }
  }
}

/** `undefined` for a key of another type: no lock. */
async function inspectString(
  port: RedisPort,
  lock: string,
  name: string,
): Promise<ResourceState | undefined> {
  try {
    return await inspect(port, keysOfLock(lock), name);
  } catch (error) {
    if (error instanceof Error && /WRONGTYPE/.test(error.message)) return undefined;
    throw error;
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
