import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { createLocks, type LockEvents, onLockEvent } from '@locks/core';
import { renewalThread } from '@locks/core/renewal-thread';
import { block } from './disturbed.ts';

/** Blocks its event loop as a thread that has a manager of its own, and posts what the event says. */
const { module, ttlMs } = workerData as { readonly module: string; readonly ttlMs: number };
const { default: makeBackend } = (await import(module)) as {
  default: () => Parameters<typeof createLocks>[0];
};
const thread = renewalThread(module, { maxBlockedMs: 60_000, captureStack: true });
const locks = createLocks(makeBackend(), { ttlMs, renewalThread: thread });
const told: LockEvents['locks:loop-blocked'][] = [];
const end = onLockEvent('locks:loop-blocked', (event) => told.push(event));
await locks.lock(`blocked-worker-${process.pid}`).run(() => {
  parentPort?.postMessage('blocks');
  block(2 * ttlMs);
});
end();
await locks.close();
parentPort?.postMessage(told);
await once(parentPort as NonNullable<typeof parentPort>, 'close');
