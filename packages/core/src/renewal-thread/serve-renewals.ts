import { checkBackend } from '../backend/validate.ts';
import type { LockBackend } from '../backend/types.ts';
import { messageOf } from '../errors.ts';
import { BlockWatch } from './block-watch.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import type { FromThread, ThreadData, ToThread } from './messages.ts';
import { THREAD_BEATS } from './shared-lease.ts';
import { ThreadClock } from './thread-clock.ts';

const BEAT_MS = 200;

/** How the thread hears and answers the event loop. */
export interface ThreadPort {
  postMessage(message: FromThread): void;
  on(event: 'message', listener: (message: ToThread) => void): unknown;
}

/**
 * Renews what the event loop asks for.
 *
 * @param load - imports the module that makes the backend
 */
export async function serveRenewals(
  port: ThreadPort,
  { module, maxBlockedMs, cells, stacks }: ThreadData,
  load: (url: string) => Promise<unknown>,
): Promise<void> {
  const post = (message: FromThread): void => port.postMessage(message);
  const clock = new ThreadClock();
  const backend = await backendOf(module, load, post);
  if (backend === undefined) return;
  const keeper = new LeaseKeeper(backend, clock, cells, maxBlockedMs, post);
  port.on('message', (message) => {
    clock.received(message.at);
    if (message.op !== 'clock') keeper.receive(message);
    else if (clock.isKnown) post({ op: 'ready', backend: backend.name });
    else post({ op: 'clock' });
  });
  const watch = stacks && new BlockWatch(keeper, clock, cells, maxBlockedMs, stacks);
  setInterval(() => {
    Atomics.add(cells, THREAD_BEATS, 1n);
    void watch?.look();
  }, BEAT_MS);
  post({ op: 'clock' });
}

async function backendOf(
  url: string,
  load: (url: string) => Promise<unknown>,
  post: (message: FromThread) => void,
): Promise<LockBackend | undefined> {
  let make: unknown;
  try {
    make = ((await load(url)) as { default?: unknown }).default;
    // The default export of a CommonJS module that a compiler wrote.
    if (typeof make !== 'function') make = (make as { default?: unknown } | undefined)?.default;
  } catch (error) {
    post({ op: 'failed', why: `its module ${url} cannot be loaded`, error: sendable(error) });
    return undefined;
  }
  if (typeof make !== 'function') {
    post({ op: 'failed', why: `the default export of its module ${url} must be a function` });
    return undefined;
  }
  try {
    return checkBackend(await (make as () => unknown)());
  } catch (error) {
    const why = `the default export of its module ${url} must make a backend`;
    post({ op: 'failed', why, error: sendable(error) });
    return undefined;
  }
}

/** An error that a message can carry, whatever properties it has. */
function sendable(error: unknown): Error {
  const copy = new Error(messageOf(error));
  if (error instanceof Error && error.stack !== undefined) copy.stack = error.stack;
  return copy;
}
