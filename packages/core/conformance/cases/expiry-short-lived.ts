import { isLockError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease.ts';
import type { Lock } from '../../src/lock.ts';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext } from '../case-context.ts';
import { clockExpiry, leaseTenure, needs } from '../needs.ts';
import { grab } from '../raw.ts';

/** Cases about processes that live for less than the ttl, as a cron job or a function does. */
export const shortLivedCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/short-lived-tries-outlive-a-crash',
    clause: '§1.9',
    title:
      'clients of which each comes anew and tries once get the lock of a dead holder, the first hold of its name, within the declared margin',
    ...needs(leaseTenure, clockExpiry),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      // A client that has just come, too: it knows nothing of the store when it takes the lock.
      await grab(await context.backend(), name, ttlMs);
      await freedForNewClients(context, name, ttlMs, (lock) => lock.tryAcquire());
    },
  },
  {
    id: 'expiry/short-waits-outlive-a-crash',
    clause: '§1.9',
    title:
      'clients of which each comes anew and waits for less than the ttl get the lock of a killed holder likewise',
    ...needs(leaseTenure, clockExpiry),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      if ((await context.backend()).capabilities.reach === 'process') {
        await grab(await context.backend(), name, ttlMs);
      } else {
        const child = await context.child();
        await child.acquire(name, { ttlMs });
        await child.kill();
      }
      await freedForNewClients(context, name, ttlMs, (lock) => acquired(lock, ttlMs / 4));
    },
  },
];

/** Waits until one of many clients gets the lock, each of which is closed after one call. */
async function freedForNewClients(
  context: CaseContext,
  name: string,
  ttlMs: number,
  call: (lock: Lock) => Promise<Lease | undefined>,
): Promise<void> {
  const { slackMs, idleGapMs } = context.timing;
  const { marginMs = 0 } = (await context.backend()).capabilities.ttl;
  let clients = 0;
  await context.until(
    () =>
      `one of ${clients} clients, each of which lived for less than the ttl, got the lock of a dead holder`,
    async () => {
      clients += 1;
      const locks = context.createLocks(await context.harness.createBackend());
      try {
        // Where a store answers so late that a client lives for its ttl, as on a machine with other work, the case shows less.
        const lease = await call(locks.lock(name));
        await lease?.release();
        return lease !== undefined;
      } finally {
        await locks.close();
      }
    },
    ttlMs + context.stepMs + marginMs + idleGapMs + 3 * slackMs,
  );
}

/** Waits for so long; `undefined`: in vain. */
async function acquired(lock: Lock, waitMs: number): Promise<Lease | undefined> {
  try {
    return await lock.acquire({ waitMs });
  } catch (error) {
    // A store that answers later than that was asked in vain too.
    if (isLockError(error, 'LOCK_TIMEOUT') || isLockError(error, 'LOCK_BACKEND')) return undefined;
    throw error;
  }
}
