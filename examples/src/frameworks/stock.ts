/** What the recipes sell: reads, thinks and writes. Without a lock two requests would sell the same unit. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';

export async function sell(redis: Redis, sku: string): Promise<'sold' | 'sold out'> {
  const units = Number(await redis.get(`units:${sku}`));
  await sleep(Number(process.env['THINK_MS'] ?? 1));
  if (units < 1) return 'sold out';
  await redis.set(`units:${sku}`, units - 1);
  return 'sold';
}
