import { scripts } from './generated/scripts.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import type { Waiter } from './waiting-room.ts';

export type Claimed = { readonly token: number; readonly sentAt: number } | 'lost' | 'unknown';

/** Gives waiters that were handed a lock the whole of their ttl; all of a slot (without cluster: all) in one request. */
export async function claim(port: RedisPort, waiters: readonly Waiter[]): Promise<Claimed[]> {
  const outcomes: Claimed[] = new Array(waiters.length).fill('unknown');
  const groups = new Map<number, number[]>();
  for (const [index, { keys }] of waiters.entries()) {
    const slot = port.cluster ? keys.slot : 0;
    const group = groups.get(slot);
    if (group) group.push(index);
    else groups.set(slot, [index]);
  }
  const claimGroup = async (group: readonly number[]): Promise<void> => {
    const members = group.map((index) => waiters[index] as Waiter);
    const sentAt = members.map(({ call }) => call.now());
    const locks = members.map(({ keys }) => keys.lock) as [string, ...string[]];
    const args = members.flatMap(({ request }) => [request.acquisitionId, String(request.ttlMs)]);
    const replies = (await runScript(port, scripts.claim, locks, args)) as unknown[];
    for (const [at, index] of group.entries()) {
      const token = Number(replies[at]);
      if (token === 0) outcomes[index] = 'lost';
      else if (token > 0) outcomes[index] = { token, sentAt: sentAt[at] as number };
    }
  };
  await Promise.allSettled([...groups.values()].map(claimGroup));
  return outcomes;
}
