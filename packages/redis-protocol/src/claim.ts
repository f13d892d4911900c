import { chunksOf, runOnChunk } from './lease-chunks.ts';
import type { RedisPort } from './port.ts';
import { decodeClaim } from './replies.ts';
import type { RedisWaiter } from './waiter.ts';

/** `unknown`: no clear answer; the next check shows whether the waiter holds. */
export type Claimed = { readonly token: number; readonly sentAt: number } | 'lost' | 'unknown';

/** Extends the locks that waiters were handed to their whole ttl. Never rejects. */
export async function claim(port: RedisPort, waiters: readonly RedisWaiter[]): Promise<Claimed[]> {
  const outcomes: Claimed[] = waiters.map(() => 'unknown');
  // One script claims shares and exclusive holds.
  const leases = waiters.map(({ keys, request }) => ({
    keys,
    request,
    ttlMs: request.ttlMs,
    mayBeShared: true,
  }));
  const chunks = chunksOf(port, leases).map(async (chunk) => {
    const sentAt = chunk.indexes.map((index) => waiters[index]?.call.now() ?? 0);
    const replies = await runOnChunk(port, leases, chunk, 'claim');
    for (const [at, index] of chunk.indexes.entries()) {
      const token = decodeClaim(replies[at]);
      outcomes[index] = typeof token === 'number' ? { token, sentAt: sentAt[at] ?? 0 } : token;
    }
  });
  await Promise.allSettled(chunks);
  return outcomes;
}
