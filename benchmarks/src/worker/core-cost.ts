import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import type { CoreCost } from './methods.ts';

/** What core itself adds to an uncontended acquire and release: with it, and on the bare backend. */
export async function coreCost(pairs: number): Promise<CoreCost> {
  const backend = memoryBackend();
  const lock = createLocks(memoryBackend()).lock('core');
  const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  const request = {
    resource: 'bare',
    acquisitionId: 'bare',
    label: 'bare',
    mode: { kind: 'exclusive' },
    ttlMs: 30_000,
  } as const;
  const withCore = await microsFor(pairs, async () => {
    const lease = await lock.acquire();
    await lease.release();
  });
  const bareBackend = await microsFor(pairs, async () => {
    const attempt = await backend.attempt(request, true, call);
    if (attempt.status === 'granted') await backend.release(attempt.grant, call);
  });
  // The call of the measured function is in both times, and so not in their difference.
  return { withCore, bareBackend };
}

async function microsFor(pairs: number, once: () => Promise<void>): Promise<number> {
  const before = process.threadCpuUsage();
  for (let pair = 0; pair < pairs; pair += 1) await once();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / pairs;
}
