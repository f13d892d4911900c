import type { BaseLease, Lease, LockManager } from '@locks/core';
import { checkManager, mustBe } from '@locks/core/backend';
import { lead, type LeadOptions } from './lead.ts';
import { leader, type LeaderInfo, watch, type WatchLeaderOptions } from './leader.ts';
import type { Leadership } from './leadership.ts';

// setup: import { createLocks } from '@locks/core'; import { election } from '@locks/leader'; import { memoryBackend } from '@locks/memory';
// setup: const locks = createLocks(memoryBackend()); declare function schedule(token: bigint, signal: AbortSignal): Promise<void>;
/**
 * One leader at a time among the processes that lead by the same name. `const { lead } = election(locks, name)` works.
 *
 * @example
 * ```ts
 * const scheduler = election(locks, 'scheduler');
 * await scheduler.lead(({ signal, fencingToken }) => schedule(fencingToken, signal));
 * ```
 */
export interface Election<L extends BaseLease = Lease> {
  /** The name of the election, and of the lock that its leader holds. */
  readonly name: string;
  /**
   * Takes part until `options.signal` aborts: waits for the leadership, works while it lasts, and is a candidate again afterwards. An
   * error of the store does not end that.
   *
   * A leadership ends when the work returns or throws, when it resigns, when its lease is lost, or when `options.signal` aborts. The
   * lease is released once the work has settled, so a work that ignores its signal keeps its leadership, or keeps this process from
   * the next one.
   *
   * @param work - runs while this process leads
   * @returns a promise that resolves when `options.signal` aborted and the work has settled
   * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`; `LOCK_CONFLICT` where permits of that name are in use;
   * the error of the work, with `whenWorkFails: 'end'`; what `onError` or `onLeader` throws
   */
  lead(work: (leadership: Leadership<L>) => unknown, options?: LeadOptions): Promise<void>;
  /**
   * Gives the leader of this moment, without taking part; `undefined` while nobody leads. Each call is one question to the store.
   *
   * @throws LockError `LOCK_CLOSED`, `LOCK_BACKEND`
   */
  leader(): Promise<LeaderInfo | undefined>;
  /**
   * Iterates over the leader of this moment and then every change that is seen: `undefined` when nobody leads. The store is asked
   * every `pollMs`, with one question, whatever the number of candidates; a leadership that begins and ends between two questions
   * is not seen. While the store does not answer, nothing is given, and the questions go on. A wait keeps the process alive.
   *
   * @throws LockError `LOCK_INVALID_ARGUMENT` at once; `LOCK_CLOSED` from the iteration
   */
  watch(options?: WatchLeaderOptions): AsyncIterable<LeaderInfo | undefined>;
}

// setup: import { createLocks } from '@locks/core'; import { election } from '@locks/leader'; import { memoryBackend } from '@locks/memory';
// setup: const locks = createLocks(memoryBackend()); declare function schedule(token: bigint, signal: AbortSignal): Promise<void>;
/**
 * Gives the election of a name. The leader is the holder of the lock `name`. Sends nothing: `lead`, `leader` and `watch` of it do.
 *
 * @param locks - the manager of the locks
 * @param name - 1 to 512 UTF-8 bytes of well-formed Unicode, case-sensitive
 * @throws LockError `LOCK_INVALID_ARGUMENT`, `LOCK_CLOSED`, `LOCK_UNSUPPORTED`
 * @example
 * ```ts
 * const scheduler = election(locks, 'scheduler');
 * const stopping = new AbortController();
 * process.once('SIGTERM', () => stopping.abort());
 * await scheduler.lead(async ({ signal, fencingToken }) => {
 *   await schedule(fencingToken, signal);
 * }, { signal: stopping.signal, ttlMs: 10_000 });
 * console.log((await scheduler.leader())?.label ?? 'nobody leads');
 * ```
 */
export function election<L extends BaseLease = Lease>(
  locks: Pick<LockManager<L>, 'lock' | 'inspect'>,
  name: string,
): Election<L> {
  checkManager('election(locks, name): the first argument', locks);
  if (typeof name !== 'string')
    throw mustBe('election(locks, name): the second argument', 'the name of the election, a string', name);
  // `lock()` refuses every other bad name, and a closed manager.
  locks.lock(name);
  return {
    name,
    lead: async (work, options) => lead(locks, name, work, options),
    leader: async () => leader(locks, name),
    watch: (options) => watch(locks, name, options),
  };
}
