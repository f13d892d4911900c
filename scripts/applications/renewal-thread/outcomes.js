import { createLocks, isLockError } from '@locks/core';
import { renewalThread } from '@locks/core/renewal-thread';
import { setTimeout as sleep } from 'node:timers/promises';

const TTL_MS = 1_000;
const codeOf = (error) => (isLockError(error) ? error.code : String(error));

function outcomeOf(lease) {
  try {
    lease.assertValid();
    return 'held';
  } catch (error) {
    return codeOf(error);
  }
}

/**
 * Blocks the event loop for three ttls, and says at once after that which of two leases is held, and whether another client is refused the
 * first one. Of a thread that is refused, the code.
 */
export async function outcomes(module, makeBackend) {
  // A thread of Bun or Deno has a clock that begins with it: the lease would be lost if its times were not translated.
  await sleep(TTL_MS);
  const without = createLocks(await makeBackend(), { ttlMs: TTL_MS });
  let locks;
  try {
    locks = createLocks(await makeBackend(), {
      ttlMs: TTL_MS,
      renewalThread: renewalThread(module, { maxBlockedMs: 60_000 }),
    });
    const kept = await locks.lock('kept').acquire();
    const lost = await without.lock('lost').acquire();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * TTL_MS);
    const first = { withThread: outcomeOf(kept), without: outcomeOf(lost) };
    return { ...first, isRefused: (await without.lock('kept').tryAcquire()) === undefined };
  } catch (error) {
    return { refused: codeOf(error) };
  } finally {
    await locks?.close();
    await without.close();
  }
}
