import type { ResultStore, SlotEntry, SlotStore } from '@locks/core/backend';
import { expect } from 'vitest';
import type { RedisServer } from '../redis/redis-server.ts';
import { waitUntil } from '../wait-until.ts';

/** A double has no digits left to tell it from its neighbours. */
const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  slot: `of ${token}`,
  state: 'done',
  token,
  label: 'é',
  at: 1_900_000_000_000,
});

/** A fenced value is written with the newest token and with a newer one, never with an older. */
export async function writeFencedValues(
  redis: RedisServer,
  set: (key: string, value: string, token: bigint, options?: { readonly ttlMs: number }) => Promise<void>,
): Promise<void> {
  await set('key', 'a', 5n);
  await set('key', 'b', 6n, { ttlMs: 60_000 });
  await expect(set('key', 'c', 5n)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
  expect(await redis.command('GET', 'key')).toBe('b');
  expect(await redis.command('PTTL', 'key')).toBeGreaterThan(50_000);
}

/** A slot store keeps the newest entry of a job, and tells the time of its server, which is on this machine. */
export async function keepNewestEntry(slots: SlotStore): Promise<void> {
  const first = await slots.read('invoices');
  expect(first.entry).toBeUndefined();
  expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  expect(await slots.write('invoices', entry(TOKEN))).toBe(true);
  await expect(slots.write('invoices', entry(TOKEN - 1n))).rejects.toMatchObject({ code: 'LOCK_LOST' });
  expect((await slots.read('invoices')).entry).toEqual(entry(TOKEN));
}

/** A result ends by itself, and its token refuses a lower one after that. */
export async function endByThemselves(results: ResultStore): Promise<void> {
  expect((await results.get('a')) ?? undefined).toBeUndefined();
  await results.set('a', 'é', TOKEN, 60_000);
  expect(await results.get('a')).toBe('é');
  await results.set('a', 'brief', TOKEN, 50);
  await waitUntil(async () => !(await results.get('a')), { what: 'the end of the result' });
  await expect(results.set('a', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
}
