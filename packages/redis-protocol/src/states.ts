import type { InspectOptions, ResourceState } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import { holdersKey, keysOfLock, type LockKeys, type ResourceKeys } from './keys.ts';
import type { RedisPort } from './port.ts';
import { decodeInspect } from './replies.ts';
import { listIn } from './reply-shape.ts';
import { wrongClient } from './retryable.ts';
import { mayAlwaysRepeat, runScript } from './run-script.ts';

const INSPECTIONS_AT_ONCE = 64;

export async function inspect(
  port: RedisPort,
  keys: ResourceKeys,
  resource: string,
  options: InspectOptions | undefined,
): Promise<ResourceState> {
  const only = options?.waiters === false ? ['holders'] : [];
  const reply = await runScript(
    port,
    scripts.inspect,
    [keys.lock, keys.queue, holdersKey(keys)],
    only,
    mayAlwaysRepeat,
  );
  return decodeInspect(resource, reply);
}

/**
 * Lists every resource below `prefix` by two scans of each master: for queues, since a free lock may have one, and for locks.
 */
export async function* list(
  port: RedisPort,
  lockKeys: LockKeys,
  prefix: string,
): AsyncIterable<ResourceState> {
  const { start } = lockKeys;
  // The pattern ends before the first character that may be encoded; the rest is compared after decoding.
  const plain = escapeGlob(start + ((lockKeys.isBare ? /^[^{}%:]*/ : /^[^{}%]*/).exec(prefix)?.[0] ?? ''));
  const seen = new Set<string>();
  // A client of a cluster knows no master before it has connected.
  if ((await port.masters()).length === 0) await port.send(start, ['PING']);
  // One node of a cluster knows only its own keys. It refuses a command on two keys in different slots.
  if (!port.cluster) {
    await port.send(start, ['EXISTS', `${start}a`, `${start}b`]).catch((error: unknown) => {
      const refusal = wrongClient(error);
      if (refusal !== undefined) throw refusal;
    });
  }
  // Queues first: a lock that is handed off between the scans is then found by its key.
  for (const [pattern, ends] of [
    [`{${plain}*}:q`, ['{', '}:q']],
    [`${plain}*`, ['', '']],
  ] as const) {
    for (const send of await port.masters()) {
      let cursor = '0';
      do {
        const [next, found] = listIn(await send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000']), 2);
        cursor = String(next);
        const fresh: [string, string][] = [];
        for (const key of listIn(found, 0) as readonly string[]) {
          const lock = key.slice(ends[0].length, key.length - ends[1].length);
          const name = lockKeys.nameIn(lock);
          if (name === undefined || !name.startsWith(prefix) || seen.has(name)) continue;
          seen.add(name);
          fresh.push([lock, name]);
        }
        for (let at = 0; at < fresh.length; at += INSPECTIONS_AT_ONCE) {
          const part = fresh.slice(at, at + INSPECTIONS_AT_ONCE);
          const states = await Promise.all(part.map(([lock, name]) => inspectString(port, lock, name)));
          for (const state of states) if (state && isListed(state, lockKeys.isBare)) yield state;
        }
      } while (cursor !== '0');
    }
  }
}

/**
 * Whether a state is that of a lock. Without a prefix, a stranger's value that nobody waits for is more likely the application's own
 * data, which a list of locks must not show.
 */
function isListed({ holders, waiters }: ResourceState, isBare: boolean): boolean {
  if (waiters.length > 0) return true;
  return isBare ? holders.some(({ fencingToken }) => fencingToken !== undefined) : holders.length > 0;
}

/** The state of a resource; `undefined` if its lock key is of another type, and so no lock. */
async function inspectString(
  port: RedisPort,
  lock: string,
  name: string,
): Promise<ResourceState | undefined> {
  try {
    return await inspect(port, keysOfLock(lock), name, undefined);
  } catch (error) {
    if (error instanceof Error && /WRONGTYPE/.test(error.message)) return undefined;
    throw error;
  }
}

function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\^-]/g, '\\$&');
}
