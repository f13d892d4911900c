import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';

/** What one kind of client does in a process that ends its client but not its locks. */
export interface ContendingClient {
  makeBackend(options: { readonly minReplicas?: number }): LockBackend;
  /** The channels that somebody listens to. */
  channels(): Promise<readonly unknown[]>;
  quit(): Promise<unknown>;
}

/** Waits for a lock once, or asks replicas that are not there; then ends the client, and writes `quit`. */
export async function contendOnce(
  kind: string | undefined,
  { makeBackend, channels, quit }: ContendingClient,
): Promise<void> {
  const lock = createLocks(makeBackend(kind === 'replicas' ? { minReplicas: 1 } : {})).lock('once');
  if (kind === 'replicas') await lock.acquire({ waitMs: 0 }).catch(() => undefined);
  else {
    const holder = await lock.acquire();
    const waiting = lock.acquire();
    while ((await channels()).length === 0);
    await holder.release();
    await (await waiting).release();
  }
  await quit();
  process.stdout.write('quit');
}
