import type { Holder, ResourceState, Waiter } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { decodeName, keysOfLock, type ResourceKeys } from './keys.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import { parseMember, parseValue } from './value.ts';

const exclusive = { kind: 'exclusive' } as const;
const inspectionsAtOnce = 64;

/** A stranger's lock is a holder too: its whole value stands for the acquisition id. */
export function holderOf(value: string, pttl: number, nowMs?: number): Holder {
  const own = parseValue(value);
  const expiresInMs = pttl >= 0 ? pttl : undefined;
  if (own === undefined)
    return { acquisitionId: value, mode: exclusive, ...(expiresInMs === undefined ? {} : { expiresInMs }) };
  return {
    acquisitionId: own.id,
    mode: exclusive,
    fencingToken: own.token,
    ...(own.label === '' ? {} : { label: own.label }),
    // A token is the server's time in µs when the lock was got, or shortly ahead of it.
    ...(nowMs === undefined ? {} : { heldForMs: Math.max(0, nowMs - Number(own.token) / 1000) }),
    ...(expiresInMs === undefined ? {} : { expiresInMs }),
  };
}

export async function inspect(port: RedisPort, keys: ResourceKeys, resource: string): Promise<ResourceState> {
  const reply = (await runScript(port, scripts.inspect, [keys.lock, keys.queue], [])) as unknown[];
  const [value, pttl, now, ...queue] = reply;
  const nowMs = Number(now);
  const waiters: Waiter[] = [];
  for (let at = 0; at < queue.length; at += 2) {
    const { id, label } = parseMember(String(queue[at]));
    const waitingForMs = Math.max(0, nowMs - Number(queue[at + 1]) / 1000);
    waiters.push({ acquisitionId: id, mode: exclusive, ...(label === '' ? {} : { label }), waitingForMs });
  }
  return {
    resource,
    holders: typeof value === 'string' ? [holderOf(value, Number(pttl), nowMs)] : [],
    waiters,
  };
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
