import type { FencedLease, LockManager } from '@locks/core';
import {
  invalidArgument,
  MAX_TIMEOUT_MS,
  milliseconds,
  oneOf,
  type SlotStore,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { once } from './once.ts';
import { readSlots } from './slot-store.ts';

/** Options of {@link runCoordinator}. All times are milliseconds. */
export interface RunCoordinatorOptions {
  /** The slot store of the runs that were done. */
  readonly slots: SlotStore;
  /**
   * The treatment of a run whose machine died. `next-machine`: a machine that waits, or whose clock is late, runs it.
   * `next-slot`: nobody does.
   * @defaultValue `'next-machine'`
   */
  readonly retry?: 'next-machine' | 'next-slot' | undefined;
  /**
   * The longest wait while another machine runs the task, to take its place if it dies. 0 does not wait; `Infinity` waits until the
   * other one has ended.
   * @defaultValue 0
   */
  readonly waitMs?: number | undefined;
  /**
   * The longest time for which the lock of a run is renewed. A whole number up to 2³¹ − 1.
   * @defaultValue none
   */
  readonly maxRunMs?: number | undefined;
  /**
   * The name of this machine for the slot store and operators: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
}

/** The coordinator that node-cron ≥ 4.4 asks before each run of a task. */
export interface RunCoordinator {
  /**
   * Whether this machine runs the task at this time.
   * @param key - the name of the task, a colon, and the time of the run in ISO 8601
   * @param ttlMs - how long a machine that died blocks the task, in milliseconds: the option `distributedLease` of the task
   * @throws LockError `LOCK_INVALID_ARGUMENT` for what is no such key, and otherwise as `once`: node-cron then skips the run on this machine
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
  /**
   * Records that the run has ended, and gives its lock back.
   * @throws what the slot store throws: the run took place, and is not recorded
   */
  onComplete(key: string): Promise<void>;
}

const TABLE = {
  slots: readSlots,
  retry: optional(oneOf('next-machine', 'next-slot'), 'next-machine'),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 0),
  maxRunMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  label: optional(text('a string', /^/)),
} satisfies OptionTable<RunCoordinatorOptions>;

const isoTime = (now: number): string => new Date(now).toISOString();

/** The name of a task, which may have colons, and the time of its run. */
const KEY = /^(.+):(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s;

// setup: import { createLocks } from '@locks/core'; import { runCoordinator } from '@locks/once'; import { redisBackend, redisSlots } from '@locks/redis-ioredis';
// setup: import { Redis } from 'ioredis'; const redis = new Redis(); declare function sendInvoices(): Promise<void>;
// setup: declare const cron: { schedule(pattern: string, work: () => Promise<void>, options: object): unknown };
/**
 * Makes the coordinator of node-cron's tasks that are `distributed`: of all machines that start the schedule, one runs the task each
 * time. A run is a slot of `once`, named after its time, under a lock that is renewed while the run lasts.
 *
 * node-cron does not tell whether a run failed: it counts as done. Where it shall be tried again, call `once` in the task.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(redis));
 * cron.schedule('0 3 * * *', sendInvoices, {
 *   name: 'invoices',
 *   distributed: true,
 *   runCoordinator: runCoordinator(locks, { slots: redisSlots(redis) }),
 * });
 * ```
 */
export function runCoordinator(
  locks: Pick<LockManager<FencedLease>, 'lock' | 'capabilities'>,
  options: RunCoordinatorOptions,
): RunCoordinator {
  const read = readOptions('runCoordinator()', options, TABLE);
  const running = new Map<string, { readonly end: () => void; readonly ended: Promise<unknown> }>();
  return {
    async shouldRun(key, ttlMs) {
      const [, task, slot] = KEY.exec(key) ?? [];
      if (task === undefined || slot === undefined)
        throw invalidArgument(
          `runCoordinator(): ${JSON.stringify(key)} is no key of a run, as invoices:2026-11-26T03:00:00.000Z`,
        );
      const run = {
        ...read,
        // The slots of a schedule are its moments: so the slot of any moment is known, and one of the future is refused.
        slot: isoTime,
        clock: () => Date.parse(slot),
        atMostMs: Math.max(ttlMs, locks.capabilities.ttl.minMs),
        keepAlive: true,
      };
      return new Promise<boolean>((resolve, reject) => {
        const ended = once(
          locks,
          task,
          () =>
            new Promise<void>((end) => {
              running.set(key, { end, ended });
              resolve(true);
            }),
          run,
        );
        // After `resolve(true)` a failure is that of `onComplete`.
        ended.then(() => resolve(false), reject);
      });
    },
    async onComplete(key) {
      const run = running.get(key);
      running.delete(key);
      run?.end();
      await run?.ended;
    },
  };
}
