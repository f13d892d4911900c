import { scripts } from './generated/scripts.ts';
import { holdersKey } from './keys.ts';
import { shareWeight } from './mode.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import type { Waiter } from './waiting-room.ts';

export type Claimed = { readonly token: number; readonly sentAt: number } | 'lost' | 'unknown';

/**
 * Gives waiters that were handed a lock the whole of their ttl; all of a slot (without cluster: all) in one request,
 * exclusive ones apart from shares.
 */
export async function claim(port: RedisPort, waiters: readonly Waiter[]): Promise<Claimed[]> {
  const outcomes: Claimed[] = new Array(waiters.length).fill('unknown');
  const groups = new Map<string, number[]>();
  for (const [index, { keys, request }] of waiters.entries()) {
    const slot = `${request.mode.kind === 'exclusive'}${port.cluster ? keys.slot : ''}`;
    const group = groups.get(slot);
    if (group) group.push(index);
    else groups.set(slot, [index]);
  }
  const claimGroup = async (group: readonly number[]): Promise<void> => {
    const members = group.map((index) => waiters[index] as Waiter);
    const sentAt = members.map(({ call }) => call.now());
    const keys: string[] = [];
    const args: string[] = [];
    let script: (typeof scripts)['claim' | 'renewShares'] = scripts.claim;
    for (const waiter of members) {
      const { acquisitionId, ttlMs } = waiter.request;
      keys.push(waiter.keys.lock);
      args.push(acquisitionId, String(ttlMs));
      if (shareWeight(waiter) === undefined) continue;
      script = scripts.renewShares;
      keys.push(holdersKey(waiter.keys));
    }
    const replies = (await runScript(port, script, keys as [string, ...string[]], args)) as unknown[];
    for (const [at, index] of group.entries()) {
      const token = Number(replies[at]);
      // Up to 2 are answers of `renew-shares`.
      if (token > 2) outcomes[index] = { token, sentAt: sentAt[at] as number };
      else if (token >= 0) outcomes[index] = 'lost';
    }
  };
  await Promise.allSettled([...groups.values()].map(claimGroup));
  return outcomes;
}
