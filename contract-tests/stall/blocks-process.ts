/** A process that holds a lease with a renewal thread, and whose event loop stands still: `blocks.test.ts` starts it. */
import { createLocks, type Lease } from '@locks/core';
import { machineNow, serveCalls } from '@locks/core/conformance/process';
import { renewalThread } from '@locks/core/renewal-thread';
import makeBackend from './thread-backend.ts';

/** What the first synchronous read after a block showed. Times are of the machine's monotonic clock, in milliseconds. */
export interface BlockReading {
  readonly blockedAt: number;
  readonly readAt: number;
  readonly isHeld: boolean;
}

export interface BlocksCommands {
  acquire(name: string): Promise<void>;
  block(ms: number): Promise<BlockReading>;
  /** Resolves when the release of the lease, which may be lost, is over. */
  release(): Promise<void>;
}

const [ttlMs, maxBlockedMs] = process.argv.slice(2).map(Number) as [number, number];
serveCalls(commands());

async function commands(): Promise<BlocksCommands> {
  const thread = renewalThread(new URL('thread-backend.ts', import.meta.url), { maxBlockedMs });
  const locks = createLocks(await makeBackend(), { ttlMs, waitMs: 60_000, renewalThread: thread });
  let lease: Lease;
  return {
    async acquire(name) {
      lease = await locks.lock(name).acquire();
    },
    async block(ms) {
      const blockedAt = machineNow();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      const isHeld = lease.validForMs > 0;
      return { blockedAt, readAt: machineNow(), isHeld };
    },
    release: () => lease.release().catch(() => undefined),
  };
}
