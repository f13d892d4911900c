import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { milliseconds, oneOf, optional, type OptionTable, readOptions } from '../backend/read-options.ts';
import { invalidArgument, LockError, mustBe } from '../errors.ts';
import { type RenewalThread, START } from '../lifetime/renewal-thread.ts';
import { Renewer } from './renewer.ts';
import { ThreadMonitor } from './thread-monitor.ts';
import { withThread } from './with-thread.ts';

/** Options of {@link renewalThread}. */
export interface RenewalThreadOptions {
  /**
   * For how long the leases are renewed after the last heartbeat of the event loop, in milliseconds, from 100 to 86 400 000. A heartbeat is
   * sent every tenth of that and of the shortest ttl, and at least every second. After it, a process that hangs for ever loses its locks within their ttl.
   */
  readonly maxBlockedMs: number;
  /**
   * How long the thread may take to start, in milliseconds, from 100 to 600 000; what an acquire waits for it is part of its `waitMs`.
   * @defaultValue 30 000
   */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Whether the thread takes the stack of what blocks the event loop, for `locks:loop-blocked`. It asks an inspector session of Node, once
   * for each block that has lasted a third of the shortest ttl; nothing is paused. Without one (Bun, Deno, a manager in a worker thread), and
   * where native code blocks, there is no stack.
   * @defaultValue false
   */
  readonly captureStack?: boolean | undefined;
}

const TABLE = {
  maxBlockedMs: milliseconds(100, 86_400_000),
  startTimeoutMs: optional(milliseconds(100, 600_000), 30_000),
  captureStack: optional(oneOf(true, false), false),
} satisfies OptionTable<RenewalThreadOptions>;

// setup: import { createLocks, type LockManager } from '@locks/core'; import { renewalThread } from '@locks/core/renewal-thread';
// setup: import type { LockBackend } from '@locks/core/backend'; declare function makeBackend(): LockBackend;
/**
 * Makes a thread that renews the leases of a lock manager while its event loop is blocked by synchronous work (docs/spec.md §20). The thread
 * is started by `createLocks`. It helps liveness, never safety: after the block, and within long loops, `lease.assertValid()` says whether
 * the lease is held.
 *
 * @param module - the URL, or the absolute path, of a file whose default export is a function that makes the same backend, with the same
 * options, on a connection of its own
 * @throws LockError `LOCK_INVALID_ARGUMENT`. Where the module cannot be loaded, or makes another backend, every acquire rejects with that
 * code, and with `LOCK_BACKEND` where the thread does not start; on a backend whose holds only the client renews that took them, and in a
 * bundle that has not the program of the thread, `createLocks` throws `LOCK_UNSUPPORTED`
 * @example
 * ```ts
 * // locks-backend.mjs: export default () => redisBackend(new Redis(process.env.REDIS_URL));
 * const thread = renewalThread(new URL('./locks-backend.mjs', import.meta.url), { maxBlockedMs: 60_000 });
 * const locks = createLocks(makeBackend(), { renewalThread: thread });
 * ```
 */
export function renewalThread(module: string | URL, options: RenewalThreadOptions): RenewalThread {
  const url = fileUrl(module);
  const { maxBlockedMs, startTimeoutMs, captureStack } = readOptions('renewalThread()', options, TABLE);
  let isStarted = false;
  return {
    maxBlockedMs,
    [START](backend, clock) {
      const { name, capabilities } = backend;
      if (capabilities.renewal !== 'any-client') {
        const why =
          capabilities.tenure === 'session'
            ? 'its session with the store, which ends when the event loop stands still for too long'
            : 'the client that took it';
        throw new LockError(
          'LOCK_UNSUPPORTED',
          `The backend ${name} does not support a renewal thread: a hold is renewed by ${why}.`,
          { backend: name },
        );
      }
      if (isStarted)
        throw invalidArgument('createLocks(): the renewalThread belongs to another lock manager already.');
      isStarted = true;
      const renewer = new Renewer(url, maxBlockedMs, startTimeoutMs, captureStack, backend, clock);
      class Monitor extends ThreadMonitor {
        override readonly renewer = renewer;
      }
      return { backend: withThread(backend, renewer), Monitor };
    },
  };
}

function fileUrl(module: unknown): string {
  const allowed = "the URL or the absolute path of a file: new URL('./locks-backend.mjs', import.meta.url)";
  const text = module instanceof URL ? module.href : module;
  if (typeof text === 'string') {
    if (isAbsolute(text)) return pathToFileURL(text).href;
    if (URL.canParse(text) && new URL(text).protocol === 'file:') return new URL(text).href;
  }
  throw mustBe('renewalThread(): the module', allowed, text);
}
