const { createLocks } = require('@locks/core');
const { renewalThread } = require('@locks/core/renewal-thread');
const { join } = require('node:path');

test('a lease outlives a block of the event loop, in a module that is required', async () => {
  const module = join(__dirname, 'locks-backend.js');
  const thread = renewalThread(module, { maxBlockedMs: 60_000 });
  const locks = createLocks(require(module)(), { ttlMs: 1_000, renewalThread: thread });
  const lease = await locks.lock('sku:42').acquire();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
  lease.assertValid();
  await lease.release();
  await locks.close();
});
