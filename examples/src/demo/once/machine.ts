import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FencedLease, LockManager } from '@locks/core';
import { day, once, type OnceResult } from '@locks/once';
import { sqliteSlots } from '@locks/sqlite';
import type { StoreAddress } from '../backends.ts';
import { type Connection, connect } from '../connect.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The first night, and the time at which the job is due. It is past: `once` refuses a slot that lies in the future of the machine. */
const FIRST_JOB_MS = Date.UTC(2020, 0, 2, 3);
/** A night is shown from ten minutes before the job is due. */
const LEAD_MS = 10 * MINUTE_MS;
/** How much faster the time of the demo runs than ours: a minute takes 120 ms. */
const SPEED = 500;
const JOB_MS = 150;

/** One machine, as plain data for its process. */
export interface MachineOrder {
  readonly address: StoreAddress;
  readonly directory: string;
  readonly label: string;
  /** How many minutes the clock of this machine is ahead of the true time; below 0: it is late. */
  readonly aheadMinutes: number;
}

/** A night begins. */
export interface Night {
  readonly index: number;
  /** When it began, by the clock of the real machine. */
  readonly beganAt: number;
}

/** What a machine did in a night. */
export interface NightReport {
  readonly slot: string;
  readonly status: OnceResult<void>['status'];
  /** Whether this machine ran the job that has a lock, and no record. */
  readonly ranWithLockAlone: boolean;
}

/** A machine with a clock of its own, and a cron that fires when that clock shows three o'clock. */
export class Machine implements AsyncDisposable {
  readonly #order: MachineOrder;
  readonly #connection: Connection;

  private constructor(order: MachineOrder, connection: Connection) {
    this.#order = order;
    this.#connection = connection;
  }

  static async start(order: MachineOrder): Promise<Machine> {
    return new Machine(order, await connect(order.address));
  }

  async night({ index, beganAt }: Night): Promise<NightReport> {
    const { label, directory, aheadMinutes } = this.#order;
    const dueMs = FIRST_JOB_MS + index * DAY_MS;
    const clock = (): number => dueMs - LEAD_MS + (Date.now() - beganAt) * SPEED + aheadMinutes * MINUTE_MS;
    await sleep(Math.max(0, (dueMs - clock()) / SPEED));
    // The settings refuse the backends without tokens.
    const locks = this.#connection.locks as LockManager<FencedLease>;
    // Both jobs start at the same moment, so that a slow record does not bring the machines of the second one together.
    const [{ slot, status }, ranWithLockAlone] = await Promise.all([
      once(locks, 'invoices', () => sleep(JOB_MS), {
        slot: day({ startsAt: '12:00' }),
        atMostMs: 30_000,
        waitMs: 30_000,
        slots: sqliteSlots(join(directory, 'once.db')),
        retry: 'next-machine',
        label,
        clock,
      }),
      this.#runWithLockAlone(),
    ]);
    return { slot, status, ranWithLockAlone };
  }

  /** The same job under a lock that nobody else holds at this moment. */
  async #runWithLockAlone(): Promise<boolean> {
    const lease = await this.#connection.locks.lock('reports').tryAcquire();
    if (lease === undefined) return false;
    try {
      await sleep(JOB_MS);
      return true;
    } finally {
      await lease.release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
  }
}
