import type { RenewalStatus, RenewItem } from '@locks/core/backend';
import type { RedisPort } from '@locks/redis-protocol';
import { decodeRenewalStatus, listIn, mayAlwaysRepeat, runScript } from '@locks/redis-protocol/kit';
import { fieldOf, type RedissonKeys } from './keys.ts';
import * as scripts from './scripts.ts';

/** As many as Redisson renews in one script: more would keep the server from other clients. */
const LEASES_PER_SCRIPT = 100;

/** Renews leases, those of one slot together. */
export async function renewAll(
  port: RedisPort,
  items: readonly RenewItem[],
  keysOf: (resource: string) => RedissonKeys,
): Promise<readonly RenewalStatus[]> {
  const results = new Array<RenewalStatus>(items.length);
  const chunks = chunksOf(items, ({ grant }) => (port.cluster ? keysOf(grant.request.resource).slot : 0));
  await Promise.all(
    chunks.map(async (indexes) => {
      const leases = indexes.map((index) => items[index] as RenewItem);
      let decode: (at: number) => RenewalStatus;
      try {
        const locks = leases.map(({ grant }) => keysOf(grant.request.resource).lock);
        const args = leases.flatMap(({ grant, ttlMs }) => [
          fieldOf(grant.request),
          String(ttlMs),
          String(grant.fencingToken ?? ''),
        ]);
        const reply = listIn(
          await runScript(port, scripts.renew, locks, args, mayAlwaysRepeat),
          leases.length,
        );
        decode = (at) => decodeRenewalStatus(reply[at]);
      } catch (error) {
        decode = () => ({ status: 'unknown', error });
      }
      for (const [at, index] of indexes.entries()) results[index] = decode(at);
    }),
  );
  return results;
}

function chunksOf<T>(items: readonly T[], groupOf: (item: T) => number): number[][] {
  const open = new Map<number, number[]>();
  const chunks: number[][] = [];
  for (const [index, item] of items.entries()) {
    const group = groupOf(item);
    let chunk = open.get(group);
    if (chunk === undefined || chunk.length === LEASES_PER_SCRIPT) {
      chunk = [];
      open.set(group, chunk);
      chunks.push(chunk);
    }
    chunk.push(index);
  }
  return chunks;
}
