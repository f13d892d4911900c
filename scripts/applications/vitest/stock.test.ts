import { createLocks, isLockError, type Lease } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { expect, test } from 'vitest';

test('a second client is refused while the first holds the lock', async () => {
  const locks = createLocks(memoryBackend());
  const lease: Lease = await locks.lock('sku:42').acquire();
  expect(await locks.lock('sku:42').tryAcquire()).toBeUndefined();
  const error: unknown = await locks
    .lock('sku:42')
    .acquire({ waitMs: 10 })
    .catch((reason: unknown) => reason);
  expect(isLockError(error, 'LOCK_TIMEOUT')).toBe(true);
  await lease.release();
  await locks.close();
});
