/** One dev server for each project: a second one says who runs the first. */
import { realpathSync } from 'node:fs';
import type { LockManager } from '@locks/core';

export type Outcome =
  | { readonly status: 'served' }
  | { readonly status: 'runs-already'; readonly where: string };

export async function serveAlone(
  locks: LockManager,
  project: string,
  url: string,
  serve: (signal: AbortSignal) => Promise<void>,
): Promise<Outcome> {
  // Two links to one project are one project.
  const lock = locks.lock(`dev-server ${realpathSync(project)}`, {
    ttlMs: 5_000,
    label: `${url} (pid ${process.pid})`,
  });
  const lease = await lock.tryAcquire();
  if (lease === undefined) {
    const [holder] = (await locks.inspect(lock.name)).holders;
    return { status: 'runs-already', where: holder?.label ?? 'it has just ended: try again' };
  }
  try {
    await serve(lease.signal);
    return { status: 'served' };
  } finally {
    await lease.release();
  }
}
