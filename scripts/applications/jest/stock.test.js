const { createLocks, isLockError } = require('@locks/core');
const { memoryBackend } = require('@locks/memory');

test('a second client is refused while the first holds the lock', async () => {
  const locks = createLocks(memoryBackend());
  const lease = await locks.lock('sku:42').acquire();
  expect(await locks.lock('sku:42').tryAcquire()).toBeUndefined();
  const error = await locks
    .lock('sku:42')
    .acquire({ waitMs: 10 })
    .catch((reason) => reason);
  expect(isLockError(error, 'LOCK_TIMEOUT')).toBe(true);
  await lease.release();
  await locks.close();
});

test.each([
  '@locks/core/backend',
  '@locks/core/transfer',
  '@locks/core/rules',
  '@locks/core/conformance',
  '@locks/core/conformance/node-test',
  '@locks/leader',
  '@locks/once',
  '@locks/opentelemetry',
  '@locks/postgres',
  '@locks/quorum',
  '@locks/redis-glide',
  '@locks/redis-ioredis',
  '@locks/redis-node',
  '@locks/redlock-compat',
  '@locks/sqlite',
  '@locks/upstash',
  '@locks/web-locks',
])('%s can be required', (name) => {
  expect(Object.keys(require(name))).not.toHaveLength(0);
});
