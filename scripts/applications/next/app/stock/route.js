import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { redisBackend } from '@locks/redis-ioredis';

// Runs while the application is built, and its answer is written to a file.
export const dynamic = 'force-static';

export async function GET() {
  const locks = createLocks(memoryBackend());
  const lock = locks.lock('sku:42', { reentrant: true });
  const holdCount = await lock.run(() => lock.run((lease) => lease.holdCount));
  return Response.json({ holdCount, redisBackend: typeof redisBackend });
}
