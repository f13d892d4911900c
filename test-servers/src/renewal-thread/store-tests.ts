// One file, since every store passes the same tests of leases that a thread renews (docs/spec.md §20).
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { once } from 'node:events';
import { Session } from 'node:inspector';
import { Worker } from 'node:worker_threads';
import {
  createLocks,
  type Lease,
  type LockEvents,
  type LockManager,
  type ManagerOptions,
  onLockEvent,
} from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { renewalThread } from '@locks/core/renewal-thread';
import { adopt, transfer } from '@locks/core/transfer';
import { describe, expect, it, onTestFinished } from 'vitest';
import { waitUntil } from '../wait-until.ts';
import { block } from './disturbed.ts';

let count = 0;
const fresh = (): string => `blocked-${process.pid}-${++count}`;
const lost = (reason: string) => expect.objectContaining({ code: 'LOCK_LOST', reason });
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** What the first synchronous read after a block says. */
function seen(lease: Lease): unknown {
  try {
    lease.assertValid();
    return lease.validForMs > 0 && !lease.signal.aborted ? 'held' : 'not held';
  } catch (error) {
    return error;
  }
}

/**
 * Tests of leases that a thread renews, beside the group `blocked` of the suite, which runs on every store. The module has the default
 * export that the thread needs, and calls `disturb(import.meta.url)`; it finds the server by the variables of the process.
 */
export function testRenewalThread(module: URL, makeBackend: () => LockBackend, ttlMs = 1_500): void {
  function open(
    options: ManagerOptions = {},
    maxBlockedMs?: number,
    query = '',
    captureStack = false,
  ): LockManager {
    const url = new URL(query, module);
    const thread =
      maxBlockedMs === undefined ? {} : { renewalThread: renewalThread(url, { maxBlockedMs, captureStack }) };
    const locks = createLocks(makeBackend(), { ttlMs, waitMs: 20_000, ...thread, ...options }) as LockManager;
    onTestFinished(() => locks.close());
    return locks;
  }

  /** Another process, which waits for the lock. Gives when it got it. */
  async function contend(name: string): Promise<{ readonly gotItAt: Promise<number> }> {
    const child = spawn(process.execPath, [script('contender.ts'), module.href, name, String(ttlMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('waits');
    return { gotItAt: lines.next().then(({ value }) => Number(value)) };
  }

  describe('a block of the event loop', () => {
    it('loses the lease to a process that waits, and its loss says for how long the loop stood still', async () => {
      const name = fresh();
      const lease = await open().lock(name).acquire();
      const { gotItAt } = await contend(name);
      const startedAt = Date.now();
      block(3 * ttlMs);
      const loss = seen(lease);
      expect(loss).toEqual(lost('expired'));
      const { blockedMs } = loss as { readonly blockedMs: number };
      expect(blockedMs).toBeGreaterThan(2 * ttlMs);
      expect(blockedMs).toBeLessThanOrEqual(Date.now() - startedAt + 1);
      expect(await gotItAt).toBeLessThan(startedAt + 3 * ttlMs);
    });

    it('keeps a lease that was granted in the same turn', async () => {
      const locks = open({}, 60_000);
      await locks.lock(fresh()).run(() => {});
      const lease = await locks.lock(fresh()).acquire();
      block(3 * ttlMs);
      expect(seen(lease)).toBe('held');
      await lease.release();
    });

    it('loses the lease once it is longer than maxBlockedMs, within a ttl, and the holder is told at once', async () => {
      const name = fresh();
      const maxBlockedMs = 2 * ttlMs;
      const lease = await open({}, maxBlockedMs).lock(name).acquire();
      const { signal } = lease;
      const { gotItAt } = await contend(name);
      const startedAt = Date.now();
      block(5 * ttlMs);
      expect(seen(lease)).toEqual(lost('expired'));
      expect(signal.reason).toMatchObject({ blockedMs: expect.any(Number) });
      expect((signal.reason as { blockedMs: number }).blockedMs).toBeGreaterThan(4 * ttlMs);
      await expect(lease.release()).rejects.toEqual(lost('expired'));
      const tookMs = (await gotItAt) - startedAt;
      expect(tookMs).toBeGreaterThan(maxBlockedMs);
      expect(tookMs).toBeLessThan(maxBlockedMs + ttlMs + 500);
    });

    it('keeps no lease with manual renewal, and none longer than its maxHoldMs', async () => {
      const locks = open({}, 60_000);
      const manual = await locks.lock(fresh()).acquire({ renewal: 'manual' });
      const limited = await locks.lock(fresh()).acquire({ maxHoldMs: ttlMs });
      block(3 * ttlMs);
      expect(seen(manual)).toEqual(lost('expired'));
      expect(seen(limited)).toMatchObject({
        reason: 'expired',
        message: expect.stringContaining('maxHoldMs'),
      });
    });

    it('keeps a lease with the ttl of its last renewal, longer or shorter', async () => {
      const locks = open({}, 60_000);
      const lease = await locks.lock(fresh()).acquire();
      await lease.renew(2 * ttlMs);
      expect(lease.validForMs).toBeGreaterThan(ttlMs);
      block(5 * ttlMs);
      expect(seen(lease)).toBe('held');
      expect(lease.validForMs).toBeGreaterThan(ttlMs);
      await lease.renew(ttlMs);
      block(3 * ttlMs);
      expect(seen(lease)).toBe('held');
      expect(lease.validForMs).toBeLessThan(ttlMs);
      await lease.release();
    });

    it('keeps shared leases, after a downgrade too, and permits', async () => {
      const locks = open({}, 60_000);
      const name = fresh();
      const writer = await locks.readWriteLock(name).write.acquire();
      await writer.downgrade();
      const reader = await locks.readWriteLock(name).read.acquire();
      const permit = await locks.semaphore(fresh(), 3).acquire({ weight: 2 });
      block(3 * ttlMs);
      expect([writer, reader, permit].map(seen)).toEqual(['held', 'held', 'held']);
      await Promise.all([writer, reader, permit].map((lease) => lease.release()));
    });

    it('is followed at once by the news of a forced release, and of a steal', async () => {
      const locks = open({}, 60_000);
      const other = open();
      const [forced, stolen] = [await locks.lock(fresh()).acquire(), await locks.lock(fresh()).acquire()];
      await other.forceRelease(forced.name);
      const thief = await other.lock(stolen.name).acquire({ steal: true, ttlMs: 60_000 });
      block(ttlMs);
      expect(seen(forced)).toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
      expect(seen(stolen)).toMatchObject({
        code: 'LOCK_LOST',
        reason: expect.stringMatching(/taken-over|force-released/),
      });
      await thief.release();
    });

    it('does not renew a lease that was transferred', async () => {
      const [locks, other] = [open({}, 60_000), open({}, 60_000)];
      const lease = await locks.lock(fresh()).acquire();
      const ticket = await transfer(lease);
      const adopted = await adopt(other, ticket);
      block(3 * ttlMs);
      expect(seen(adopted)).toBe('held');
      await adopted.release();
    });
  });

  describe('the event of a block (§8.5, §20.9)', () => {
    /** The blocks that are told while the test runs. */
    function blocksTold(): LockEvents['locks:loop-blocked'][] {
      const told: LockEvents['locks:loop-blocked'][] = [];
      onTestFinished(onLockEvent('locks:loop-blocked', (event) => told.push(event)));
      return told;
    }

    /** What the event says of a block of two ttls with one lease, which is told at the release or at the next heartbeat. */
    async function blockTold(
      captureStack: boolean,
      work: (ms: number) => void,
      query = '',
    ): Promise<LockEvents['locks:loop-blocked']> {
      const told = blocksTold();
      const lease = await open({}, 60_000, query, captureStack).lock(fresh()).acquire();
      await delay(200);
      const startedAt = performance.now();
      work(2 * ttlMs);
      const tookMs = performance.now() - startedAt;
      await waitUntil(() => told.length > 0, { what: 'the event' });
      await delay(ttlMs);
      await lease.release();
      expect(told).toMatchObject([{ ttlMs, leases: 1 }]);
      const [event] = told as [LockEvents['locks:loop-blocked']];
      expect(event.blockedMs).toBeGreaterThan(1.6 * ttlMs);
      expect(event.blockedMs).toBeLessThanOrEqual(tookMs + 50);
      return event;
    }

    function reckonsLong(ms: number): void {
      const end = performance.now() + ms;
      while (performance.now() < end);
    }

    it('names what blocked it, where the thread takes the stack', async () => {
      const { stack } = await blockTold(true, reckonsLong);
      // On top of it may be what it calls, such as the getter of `performance`.
      expect(stack).toMatch(/^ +at reckonsLong \(.*store-tests\.ts:\d+:\d+\)$/m);
    });

    it('names code that waits, too, and has no stack without the option', async () => {
      expect((await blockTold(true, block)).stack).toMatch(/ at block \(.*disturbed\.ts:\d+:\d+\)/);
      expect((await blockTold(false, block)).stack).toBeUndefined();
    });

    it('has no stack of native code, and the next block has its own', async () => {
      const told = blocksTold();
      const lease = await open({}, 60_000, '', true).lock(fresh()).acquire();
      await delay(200);
      spawnSync('sleep', [String((2 * ttlMs) / 1_000)]);
      await waitUntil(() => told.length === 1, { what: 'the first event' });
      reckonsLong(2 * ttlMs);
      await waitUntil(() => told.length === 2, { what: 'the second event' });
      expect(told.map(({ stack }) => stack)).toEqual([undefined, expect.stringContaining('reckonsLong')]);
      expect(seen(lease)).toBe('held');
      await lease.release();
    });

    it('is told at a release that comes before every heartbeat', async () => {
      const told = blocksTold();
      const locks = open({}, 60_000, '', true);
      await locks.lock(fresh()).run(async () => {
        await delay(200);
        reckonsLong(2 * ttlMs);
      });
      expect(told).toMatchObject([{ leases: 1, stack: expect.stringContaining('reckonsLong') }]);
    });

    it('has its stack while a debugger is attached, which is not told of a pause', async () => {
      const session = new Session();
      session.connect();
      onTestFinished(() => session.disconnect());
      let pauses = 0;
      session.on('Debugger.paused', () => (pauses += 1));
      session.post('Debugger.enable');
      expect((await blockTold(true, reckonsLong)).stack).toContain('reckonsLong');
      expect(pauses).toBe(0);
    });

    it('has no stack of a manager in another thread, whose thread does not take that of the main thread', async () => {
      const worker = new Worker(new URL('blocked-worker.ts', import.meta.url), {
        workerData: { module: module.href, ttlMs },
      });
      expect(await once(worker, 'message')).toEqual(['blocks']);
      reckonsLong(1.5 * ttlMs);
      const [told] = await once(worker, 'message');
      expect(told).toMatchObject([{ leases: 1, stack: undefined }]);
      await worker.terminate();
    });

    it('is told without a stack when the thread ends while it asks for one', async () => {
      const stopped = new Promise((resolve) =>
        onTestFinished(onLockEvent('locks:renewal-thread-stopped', resolve)),
      );
      const told = blocksTold();
      const locks = open({}, 60_000, `?exits=${(2 / 3) * ttlMs}`, true);
      await locks.lock(fresh()).acquire();
      const startedAt = performance.now();
      spawnSync('sleep', [String((2 * ttlMs) / 1_000)]);
      reckonsLong(ttlMs / 10);
      expect(performance.now() - startedAt).toBeLessThan(3 * ttlMs);
      await stopped;
      await waitUntil(() => told.length > 0, { what: 'the event' });
      expect(told).toMatchObject([{ leases: 1, stack: undefined }]);
    });
  });

  describe('a thread that ends', () => {
    it.each(['throws', 'exits', 'hangs'])(
      'leaves the renewal to the event loop, which says so (%s)',
      async (how) => {
        const stopped: unknown[] = [];
        onTestFinished(onLockEvent('locks:renewal-thread-stopped', (event) => stopped.push(event)));
        const warnings: unknown[] = [];
        const listener = (warning: object): void => void warnings.push(warning);
        process.on('warning', listener);
        onTestFinished(() => void process.off('warning', listener));
        const locks = open({}, 60_000, `?${how}=${ttlMs}`);
        const lease = await locks.lock(fresh()).acquire();
        await waitUntil(() => stopped.length > 0, { what: 'the end of the thread' });
        expect(stopped).toMatchObject([{ leases: 1, error: expect.any(Error) }]);
        await delay(3 * ttlMs);
        expect(seen(lease)).toBe('held');
        expect(warnings).toMatchObject([{ code: 'LOCKS_RENEWAL_THREAD_STOPPED' }]);
        await lease.release();
        await locks.lock(fresh()).run(() => {});
      },
    );

    it('during a block leaves the lease to its ttl: the loss is told at the first read', async () => {
      const locks = open({}, 60_000, `?exits=${ttlMs}`);
      const lease = await locks.lock(fresh()).acquire();
      block(4 * ttlMs);
      expect(seen(lease)).toMatchObject({ code: 'LOCK_LOST' });
    });
  });

  it.each(['exit', 'throw', 'close'])(
    'a process ends with its thread, and waits for nothing (%s)',
    async (how) => {
      const run = promisify(execFile)(process.execPath, [script('ending-process.ts'), module.href, how], {
        timeout: 20_000,
      });
      const { stdout } = await run.catch((error: { stdout: string; code: unknown; killed: boolean }) => {
        expect([how, error.killed]).toEqual(['throw', false]);
        return error;
      });
      expect(stdout).toBe(how === 'close' ? 'closed\n' : '');
    },
  );
}
