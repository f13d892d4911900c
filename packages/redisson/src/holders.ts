import type { Holder } from '@locks/core/backend';
import { listIn } from '@locks/redis-protocol/kit';

/** Fields of the hash that are no owners: of our fenced locks, and of Redisson's readers/writer locks. */
const NO_OWNERS: ReadonlySet<string> = new Set(['token', 'mode']);

/** Reads the reply of the scripts that look at a lock: the milliseconds left, the token, then field and count in turn. */
export function decodeHolders(reply: unknown): Holder[] {
  const [left, token, ...fields] = listIn(reply, 0);
  const holders: Holder[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const field = String(fields[at]);
    if (NO_OWNERS.has(field)) continue;
    const colon = field.indexOf(':');
    // Of Redisson's fields, `id:threadId`, the thread is shown as the label.
    const label = colon < 0 ? '' : field.slice(colon + 1);
    holders.push({
      acquisitionId: colon < 0 ? field : field.slice(0, colon),
      mode: { kind: 'exclusive' },
      ...(label !== '' && { label }),
      ...(token !== '' && { fencingToken: BigInt(String(token)) }),
      ...(Number(left) >= 0 && { expiresInMs: Number(left) }),
    });
  }
  return holders;
}
