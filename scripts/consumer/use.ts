// What an application's compiler sees, in `--strict` and without `skipLibCheck`.
import { createLocks, isLockError } from '@locks/core';
import type { LockBackend, Attempt } from '@locks/core/backend';
import { memoryBackend } from '@locks/memory';

const locks = createLocks(memoryBackend(), { ttlMs: 30_000 });

export async function sell(sku: string, signal: AbortSignal): Promise<bigint | undefined> {
  try {
    return await locks.lock(sku).run(
      async (lease) => {
        const token: bigint = lease.fencingToken;
        await fetch('http://127.0.0.1/', { signal: lease.signal });
        return token;
      },
      { waitMs: 5_000, signal },
    );
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return undefined;
    throw error;
  }
}

export async function once(): Promise<void> {
  await using lease = await locks.lock('nightly').acquire({ waitMs: 0 });
  lease.assertValid(1_000);
}

// A backend that is not known at compile time may have no token.
export async function anyBackend(backend: LockBackend): Promise<bigint | undefined> {
  const lease = await createLocks(backend).lock('sku:42').tryAcquire();
  return lease?.fencingToken;
}

export function explain(attempt: Attempt): string {
  return attempt.status === 'granted' ? String(attempt.grant.countedFrom) : 'contended';
}
