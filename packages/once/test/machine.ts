import { createLocks, type FencedLease, LockError, type LockManager } from '@locks/core';
import { memoryTestBackend, type MemoryTestBackend } from '@locks/memory';
import {
  every,
  once,
  type OnceOptions,
  type SlotStore,
  type OnceResult,
  type OnceRun,
  type SlotAnswer,
  type SlotEntry,
} from '../src/index.ts';

export const MINUTE = 60_000;
/** The true time of all tests. */
export const NOON = Date.parse('2026-11-22T12:00:00Z');

/** A slot store in memory that compares tokens, as a data base does. */
export class TestRecord implements SlotStore {
  readonly entries = new Map<string, SlotEntry>();
  /** Every accepted write. */
  readonly written: SlotEntry[] = [];
  /** Called before the next read or write takes effect. */
  before: { read?: () => Promise<void> | void; write?: () => Promise<void> | void } = {};
  /** Whether a refusal is thrown, as `fencedSet` does. */
  throwsRefusals = false;

  /** The time of the store; one that tells none gives `undefined`. */
  time: () => number | undefined = () => undefined;

  async read(job: string): Promise<SlotAnswer> {
    await this.#take('read');
    return { entry: this.entries.get(job), storeTime: this.time() };
  }

  async write(job: string, entry: SlotEntry): Promise<boolean> {
    await this.#take('write');
    const found = this.entries.get(job);
    if (found !== undefined && found.token > entry.token) {
      if (this.throwsRefusals)
        throw new LockError('LOCK_LOST', 'a newer token wrote', { reason: 'taken-over' });
      return false;
    }
    this.entries.set(job, entry);
    this.written.push(entry);
    return true;
  }

  async #take(what: 'read' | 'write'): Promise<void> {
    const hook = this.before[what];
    delete this.before[what];
    await hook?.();
  }
}

/** Machines that share a store and a slot store, each with a clock of its own. */
export class Machines {
  readonly memory: MemoryTestBackend = memoryTestBackend();
  readonly locks: LockManager<FencedLease> = createLocks(this.memory);
  readonly slots = new TestRecord();
  /** The true time. */
  now = NOON;
  /** Who ran, and for which slot. */
  readonly ran: string[] = [];

  constructor() {
    this.slots.time = () => this.now;
  }

  /** Calls `once` on a machine whose clock is `aheadMs` ahead. */
  call<T = string>(
    label: string,
    aheadMs: number,
    options: Partial<OnceOptions> = {},
    job?: (run: OnceRun) => T | Promise<T>,
  ): Promise<OnceResult<T>> {
    const all: OnceOptions = {
      slot: every(10 * MINUTE),
      atMostMs: 10 * MINUTE,
      slots: this.slots,
      retry: 'next-machine',
      label,
      clock: () => this.now + aheadMs,
      ...options,
    };
    return once(
      this.locks,
      'invoices',
      (run) => {
        this.ran.push(`${label} ${run.slot.slice(11, 16)}`);
        return job === undefined ? (label as T) : job(run);
      },
      all,
    );
  }

  /** The end of the present hold in the store, on `performance.now()`. */
  async heldUntil(): Promise<{ readonly expiresAt: number }> {
    const { holders } = await this.locks.inspect('invoices');
    return { expiresAt: performance.now() + (holders[0]?.expiresInMs ?? Number.NaN) };
  }
}
