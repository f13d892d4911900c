import type { LockManager } from '@locks/core';
import { BoardServer } from '../board/board-server.ts';
import { WatchedLocks } from '../board/watched-locks.ts';
import { UsageError } from '../usage-error.ts';
import type { BoardPlan } from './board-plan.ts';
import type { Write } from './look.ts';

/** Serves a page that shows who holds and who waits, until `signal` aborts. */
export async function board(
  locks: LockManager,
  { prefix, ...options }: BoardPlan,
  page: URL,
  signal: AbortSignal,
  write: Write,
): Promise<void> {
  const watched = new WatchedLocks(locks, prefix);
  // A store that cannot list says so before a page is served.
  await watched.look();
  const server = new BoardServer({ ...options, watched, page });
  const address = await server.listen().catch((error: unknown) => {
    throw new UsageError(`no page can be served at --host and --port: ${(error as Error).message}`);
  });
  try {
    write(`${address}\n`);
    await watched.keepLooking(options.everyMs, signal);
  } finally {
    await server[Symbol.asyncDispose]();
  }
}
