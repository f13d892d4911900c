import { createLocks, type FencedLockManager } from '@locks/core';
import { every, type OnceOptions, type OnceResult, type OnceRun } from '@locks/once';
import { redisBackend, redisSlots } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { scheduleInvoices as scheduleWithAgenda } from '../src/schedulers/agenda.ts';
import { scheduleInvoices as scheduleWithBullmq } from '../src/schedulers/bullmq.ts';
import { scheduleInvoices as scheduleWithCroner } from '../src/schedulers/croner.ts';
import { scheduleInvoices as scheduleWithNodeCron } from '../src/schedulers/node-cron.ts';

const EVERY_SECOND = '* * * * * *';
const MACHINES = 3;

let server: RedisServer;
let fleet: Fleet;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(() => {
  fleet = new Fleet();
});
afterEach(async () => {
  await fleet.close();
});
afterAll(async () => {
  await server.stop();
});

type Result = OnceResult<void> | { status: 'error'; error: unknown };

/** Machines with a connection each: the locks and the record are in one Redis. */
class Fleet {
  readonly clients = Array.from(
    { length: MACHINES },
    () => new Redis(server.url, { maxRetriesPerRequest: null }),
  );
  readonly managers = this.clients.map((client) => createLocks(redisBackend(client)));
  /** The slots of the runs, as they ended. */
  readonly ran: string[] = [];
  readonly results: Result[] = [];
  /** Whether a run fails. */
  fails: (run: OnceRun) => boolean = () => false;
  /** How long a run takes, in milliseconds: another machine's call is on its way meanwhile. */
  runMs = 20;
  /** How many runs ended after their slot was over by the clock. */
  lateRuns = 0;
  /** Runs that are under way, and the most there ever were at once. */
  running = 0;
  mostRunning = 0;
  readonly #stops: (() => unknown)[] = [];

  /** Starts the schedule on each machine. */
  async start(
    schedule: (
      locks: FencedLockManager,
      options: OnceOptions,
      send: (run: OnceRun) => Promise<void>,
      onResult: (result: Result) => void,
      client: Redis,
    ) => unknown,
    slotMs = 1_000,
  ): Promise<void> {
    // Slots that begin far from the times of the patterns.
    const slot = every(slotMs, { offsetMs: slotMs / 2 });
    for (const [machine, client] of this.clients.entries()) {
      const locks = this.managers[machine] as FencedLockManager;
      const slots = redisSlots(client);
      const options = { slot, atMostMs: 60_000, waitMs: 30_000, slots, retry: 'next-machine' } as const;
      const onResult = (result: Result) => this.results.push(result);
      const stop = await schedule(locks, options, (run) => this.#send(run, slotMs), onResult, client);
      this.#stops.push(stop as () => unknown);
    }
  }

  async #send(run: OnceRun, slotMs: number): Promise<void> {
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    await new Promise((resolve) => setTimeout(resolve, this.runMs));
    this.running -= 1;
    if (this.fails(run)) throw new Error('the mail server is away');
    this.ran.push(run.slot);
    if (Date.now() >= Date.parse(run.slot) + slotMs) this.lateRuns += 1;
  }

  statuses(status: Result['status']): Result[] {
    return this.results.filter((result) => result.status === status);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#stops.splice(0).map((stop) => stop()));
  }

  async close(): Promise<void> {
    await this.stop();
    await Promise.all(this.managers.map((locks) => locks.close()));
    for (const client of this.clients) client.disconnect();
    const client = new Redis(server.url);
    await client.flushall();
    client.disconnect();
  }
}

const once = (slots: readonly string[]): string[] => [...new Set(slots)];

describe.each([
  ['croner', scheduleWithCroner],
  ['node-cron', scheduleWithNodeCron],
])('%s on three machines', (_name, schedule) => {
  it('runs each slot on one of them, and not at once on two', async () => {
    await fleet.start((locks, options, send, onResult) =>
      schedule(locks, options, send, onResult, EVERY_SECOND),
    );
    await waitUntil(() => fleet.ran.length >= 3 && fleet.statuses('done-before').length >= 4, {
      what: 'three slots on three machines',
    });
    await fleet.stop();
    expect(fleet.ran).toEqual(once(fleet.ran));
    expect(fleet.mostRunning).toBe(1);
    expect(fleet.statuses('error')).toEqual([]);
  });

  it('runs a slot on another machine when the run failed', async () => {
    let failures = 1;
    fleet.fails = () => failures-- > 0;
    await fleet.start((locks, options, send, onResult) =>
      schedule(locks, options, send, onResult, EVERY_SECOND),
    );
    await waitUntil(() => fleet.ran.length >= 1 && fleet.statuses('error').length >= 1, {
      what: 'a run that failed, and one that did not',
    });
    await fleet.stop();
    expect(fleet.ran).toEqual(once(fleet.ran));
    expect(fleet.statuses('error')).toHaveLength(1);
  });
});

describe('BullMQ with a worker on each of three machines', () => {
  const start = (pattern: string, slotMs: number) =>
    fleet.start(
      (locks, options, send, onResult, client) =>
        scheduleWithBullmq(locks, options, send, onResult, client, pattern),
      slotMs,
    );

  it('runs each slot once, and not again when BullMQ hands a job out twice', async () => {
    await start(EVERY_SECOND, 1_000);
    await waitUntil(() => fleet.ran.length >= 3, { what: 'three slots' });
    const queue = new Queue('invoices', { connection: fleet.clients[0] as Redis });
    // As with a job whose worker stalled, and was not dead.
    const [job] = await queue.getCompleted();
    await job?.retry('completed');
    const skipped = () => fleet.statuses('done-before').length + fleet.statuses('slot-over').length;
    await waitUntil(() => skipped() >= 1, { what: 'the second call' });
    await queue.close();
    await fleet.stop();
    expect(fleet.ran).toEqual(once(fleet.ran));
    expect(fleet.mostRunning).toBe(1);
    expect(fleet.statuses('error')).toEqual([]);
  });

  it('runs a slot again when the run failed, also when the clock shows the next slot already', async () => {
    const failed = new Set<string>();
    fleet.fails = ({ slot }) => !failed.has(slot) && failed.add(slot).has(slot);
    // Due in the middle of a slot of two seconds; the second attempt is a second later.
    await start('*/2 * * * * *', 2_000);
    await waitUntil(() => fleet.lateRuns >= 1, { what: 'a repeated run' });
    await fleet.stop();
    expect(fleet.ran).toEqual(once(fleet.ran));
    expect([...failed]).toEqual(expect.arrayContaining(fleet.ran));
  });
});

describe('Agenda on each of three machines', () => {
  const start = (slotMs: number, lockLifetime?: number) =>
    fleet.start(
      (locks, options, send, onResult) =>
        scheduleWithAgenda(locks, options, send, onResult, server.url, EVERY_SECOND, lockLifetime),
      slotMs,
    );

  it('runs each slot once', async () => {
    await start(1_000);
    await waitUntil(() => fleet.ran.length >= 3, { what: 'three slots' });
    await fleet.stop();
    expect(fleet.ran).toEqual(once(fleet.ran));
    expect(fleet.mostRunning).toBe(1);
    expect(fleet.statuses('error')).toEqual([]);
  });

  it('runs a slot once also where Agenda gives the job to a second machine that the first one is still at', async () => {
    fleet.runMs = 4_000;
    // A day: the run ends in its slot.
    await start(86_400_000, 500);
    await waitUntil(() => fleet.statuses('done-before').length >= 1, { what: 'the second call' });
    await fleet.stop();
    expect(fleet.ran).toHaveLength(1);
    expect(fleet.mostRunning).toBe(1);
  });
});
