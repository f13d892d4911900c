import { setTimeout as sleep } from 'node:timers/promises';
import { onLockEvent } from '@locks/core';
import { describe, expect, it, vi } from 'vitest';
import { once, type OnceOptions, type OnceRun } from '../src/index.ts';
import { Machines, MINUTE, NOON } from './machine.ts';

const until = (condition: () => void | Promise<void>) =>
  vi.waitFor(condition, { timeout: 20_000, interval: 2 });
const untilAborted = ({ signal }: OnceRun) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );

describe('a slot', () => {
  it('runs on the machine that comes first, and on no other one', async () => {
    const machines = new Machines();
    const first = await machines.call('a', 0);
    expect(first).toMatchObject({ status: 'ran', slot: '2026-11-22T12:00:00.000Z', value: 'a' });
    const recorded = { slot: '2026-11-22T12:00:00.000Z', state: 'done', label: 'a' };
    expect(await machines.call('b', 0)).toMatchObject({ status: 'done-before', recorded });
    expect(await machines.call('a', 0)).toMatchObject({ status: 'done-before', recorded });
    expect(machines.ran).toEqual(['a 12:00']);
    expect(machines.slots.written).toHaveLength(1);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
  });

  it('runs in the next slot again, with a higher token', async () => {
    const machines = new Machines();
    const first = await machines.call('a', 0);
    machines.now += 10 * MINUTE;
    const second = await machines.call('b', 0);
    expect(machines.ran).toEqual(['a 12:00', 'b 12:10']);
    const tokens = [first, second].map((result) => ('fencingToken' in result ? result.fencingToken : 0n));
    expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint);
  });

  it('does not run on a machine whose clock is late: not in the same slot, and not in one that is over', async () => {
    const machines = new Machines();
    await machines.call('a', 0);
    // The cron of `late` fires when its own clock shows noon, four minutes after that of `a`.
    machines.now = NOON + 4 * MINUTE;
    expect(await machines.call('late', -4 * MINUTE)).toMatchObject({ status: 'done-before' });
    machines.now = NOON + 10 * MINUTE;
    await machines.call('a', 0);
    expect(await machines.call('late', -4 * MINUTE)).toMatchObject({
      status: 'slot-over',
      slot: '2026-11-22T12:00:00.000Z',
      recorded: { slot: '2026-11-22T12:10:00.000Z' },
      isSlotAhead: false,
    });
    expect(machines.ran).toEqual(['a 12:00', 'a 12:10']);
  });

  it('runs on a machine whose clock is ahead, and then on no other one', async () => {
    const machines = new Machines();
    // As far as clocks may differ.
    machines.now = NOON - MINUTE;
    expect(await machines.call('ahead', MINUTE)).toMatchObject({ status: 'ran' });
    machines.now = NOON;
    expect(await machines.call('a', 0)).toMatchObject({ status: 'done-before' });
  });

  it('does not run while it runs elsewhere; with waitMs the other machine waits for how that ends', async () => {
    const machines = new Machines();
    let finish = (): void => {};
    const running = machines.call('a', 0, {}, () => new Promise<void>((resolve) => (finish = resolve)));
    await until(() => expect(machines.ran).toHaveLength(1));
    const slot = '2026-11-22T12:00:00.000Z';
    expect(await machines.call('b', 0)).toEqual({ status: 'running-elsewhere', slot });
    expect(await machines.call('b', 0, { waitMs: 10 })).toEqual({ status: 'running-elsewhere', slot });
    const waiting = machines.call('c', 0, { waitMs: 60_000 });
    await until(async () => expect((await machines.locks.inspect('invoices')).waiters).toHaveLength(1));
    finish();
    expect(await running).toMatchObject({ status: 'ran' });
    expect(await waiting).toMatchObject({ status: 'done-before', recorded: { label: 'a' } });
    expect(machines.ran).toEqual(['a 12:00']);
  });

  it('runs once when many machines call at the same time', async () => {
    const machines = new Machines();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => machines.call(`m${index}`, 0, { waitMs: 30_000 })),
    );
    expect(results.map(({ status }) => status).sort()).toEqual([
      ...Array.from({ length: 19 }, () => 'done-before'),
      'ran',
    ]);
  });

  it('jobs of different names do not know of each other', async () => {
    const machines = new Machines();
    await machines.call('a', 0);
    const options: OnceOptions = {
      slot: () => 'x',
      atMostMs: 1_000,
      slots: machines.slots,
      retry: 'next-machine',
    };
    expect(await once(machines.locks, 'reports', () => 5, options)).toMatchObject({
      status: 'ran',
      value: 5,
    });
  });
});

describe('a run that fails', () => {
  const error = new Error('no connection');
  const fail = (): never => {
    throw error;
  };

  it("is repeated by the next machine with retry 'next-machine', at once", async () => {
    const machines = new Machines();
    await expect(machines.call('a', 0, { atLeastMs: MINUTE }, fail)).rejects.toBe(error);
    expect(machines.slots.written).toEqual([]);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    expect(await machines.call('b', 0)).toMatchObject({ status: 'ran' });
  });

  it('is repeated by a machine that waits', async () => {
    const machines = new Machines();
    let end = (): void => {};
    const running = machines.call('a', 0, {}, () => new Promise((_, reject) => (end = () => reject(error))));
    await until(() => expect(machines.ran).toHaveLength(1));
    const waiting = machines.call('b', 0, { waitMs: 60_000 });
    await until(async () => expect((await machines.locks.inspect('invoices')).waiters).toHaveLength(1));
    end();
    await expect(running).rejects.toBe(error);
    expect(await waiting).toMatchObject({ status: 'ran', value: 'b' });
  });

  it("is repeated by nobody with retry 'next-slot', until the next slot", async () => {
    const machines = new Machines();
    const retry = { retry: 'next-slot' } as const;
    await expect(machines.call('a', 0, retry, fail)).rejects.toBe(error);
    expect(await machines.call('b', 0, retry)).toMatchObject({
      status: 'failed-before',
      recorded: { state: 'begun', label: 'a' },
    });
    machines.now += 10 * MINUTE;
    expect(await machines.call('b', 0, retry)).toMatchObject({ status: 'ran' });
    expect(await machines.call('a', 0, retry)).toMatchObject({ status: 'done-before' });
    expect(machines.ran).toEqual(['a 12:00', 'b 12:10']);
  });

  it("with retry 'next-slot' is begun in the slot store before the job runs, and not run where that fails", async () => {
    const machines = new Machines();
    const retry = { retry: 'next-slot' } as const;
    await machines.call('a', 0, retry, () => {
      expect(machines.slots.written).toMatchObject([{ state: 'begun' }]);
    });
    expect(machines.slots.written).toMatchObject([{ state: 'begun' }, { state: 'done' }]);
    machines.now += 10 * MINUTE;
    machines.slots.before.write = fail;
    await expect(machines.call('a', 0, retry)).rejects.toBe(error);
    expect(machines.ran).toHaveLength(1);
    expect(await machines.call('b', 0, retry)).toMatchObject({ status: 'ran' });
  });

  it('a slot store that cannot be read runs nothing; one that cannot be written is told, and the slot may run again', async () => {
    const machines = new Machines();
    machines.slots.before.read = fail;
    await expect(machines.call('a', 0)).rejects.toBe(error);
    expect(machines.ran).toEqual([]);
    machines.slots.before.write = fail;
    await expect(machines.call('a', 0)).rejects.toBe(error);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    expect(await machines.call('b', 0)).toMatchObject({ status: 'ran' });
    expect(machines.ran).toEqual(['a 12:00', 'b 12:00']);
  });
});

describe('a machine that stood still for longer than its lease', () => {
  it('before its job began does not run it, when another one has', async () => {
    const machines = new Machines();
    machines.slots.before.read = async () => {
      machines.memory.advance(11 * MINUTE);
      expect(await machines.call('b', 0)).toMatchObject({ status: 'ran' });
    };
    // It reads the slot store after the pause.
    expect(await machines.call('a', 0)).toMatchObject({ status: 'done-before' });
    expect(machines.ran).toEqual(['b 12:00']);
  });

  it('after it had read the slot store does not run it either', async () => {
    const machines = new Machines();
    const { slots } = machines;
    const read = slots.read.bind(slots);
    slots.read = async (job) => {
      const found = await read(job);
      machines.memory.advance(11 * MINUTE);
      slots.read = read;
      expect(await machines.call('b', 0)).toMatchObject({ status: 'ran' });
      return found;
    };
    await expect(machines.call('a', 0)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(machines.ran).toEqual(['b 12:00']);
  });

  it("with retry 'next-slot' does not begin the slot again, nor one that was done meanwhile", async () => {
    const machines = new Machines();
    const retry = { retry: 'next-slot' } as const;
    machines.slots.before.write = async () => {
      machines.memory.advance(11 * MINUTE);
      expect(await machines.call('b', 0, retry)).toMatchObject({ status: 'ran' });
    };
    await expect(machines.call('a', 0, retry)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(machines.ran).toEqual(['b 12:00']);
    expect(machines.slots.entries.get('invoices')).toMatchObject({ state: 'done', label: 'b' });
  });

  it.each([false, true])(
    'and whose job had ended is overtaken, and does not write over the slot store (refused by an error: %s)',
    async (throwsRefusals) => {
      const machines = new Machines();
      machines.slots.throwsRefusals = throwsRefusals;
      const signals: boolean[] = [];
      const result = await machines.call('a', 0, {}, async ({ signal }) => {
        machines.memory.advance(11 * MINUTE);
        signals.push(signal.aborted);
        expect(await machines.call('b', 0)).toMatchObject({ status: 'ran' });
        return 'late';
      });
      expect(result).toMatchObject({ status: 'overtaken', value: 'late' });
      expect(signals).toEqual([true]);
      expect(machines.slots.entries.get('invoices')).toMatchObject({ label: 'b' });
    },
  );

  it('records its slot all the same while nobody newer has written', async () => {
    const machines = new Machines();
    const result = await machines.call('a', 0, {}, () => machines.memory.advance(11 * MINUTE));
    expect(result).toMatchObject({ status: 'ran' });
    expect(await machines.call('b', 0)).toMatchObject({ status: 'done-before' });
  });
});

describe('the lock', () => {
  it('is kept for atMostMs, without renewal: then the signal of the job aborts', async () => {
    const machines = new Machines();
    const startedAt = performance.now();
    const failed = machines.call('a', 0, { atMostMs: 300 }, untilAborted);
    await expect(failed).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(performance.now() - startedAt).toBeGreaterThan(250);
    // The store ends the lease a little later than its holder.
    expect(await machines.call('b', 0, { waitMs: 20_000 })).toMatchObject({ status: 'ran' });
  });

  it('is renewed with keepAlive for as long as the job runs, and reported as no slow hold', async () => {
    const machines = new Machines();
    const slow = vi.fn();
    const stop = onLockEvent('locks:slow-hold', slow);
    const keepAlive = { atMostMs: 300, keepAlive: true };
    const result = await machines.call('a', 0, keepAlive, async (run) => {
      const { expiresAt } = await machines.heldUntil();
      // Longer than two ttls. With each renewal the end in the store is later than any end before it.
      for (let ends = 0, last = expiresAt; ends < 7; ) {
        const { expiresAt: end } = await machines.heldUntil();
        if (end > last + 50) [ends, last] = [ends + 1, end];
        await sleep(5);
      }
      run.assertValid();
      return (await machines.call('b', 0)).status;
    });
    expect(result).toMatchObject({ status: 'ran', value: 'running-elsewhere' });
    expect(slow).not.toHaveBeenCalled();
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    stop();
  });

  it('is no longer renewed after maxRunMs: the signal of the job aborts, and a job that goes on loses the lock', async () => {
    const machines = new Machines();
    const bounded = { atMostMs: 300, keepAlive: true, maxRunMs: 400 };
    const startedAt = performance.now();
    await expect(machines.call('a', 0, bounded, untilAborted)).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    expect(performance.now() - startedAt).toBeGreaterThan(390);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    const deaf = machines.call('a', 0, bounded, async (run) => {
      await until(() =>
        expect(() => run.assertValid()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' })),
      );
      return (await machines.call('b', 0, { waitMs: 20_000 })).status;
    });
    expect(await deaf).toMatchObject({ status: 'overtaken', value: 'ran' });
  });

  it('is kept for atLeastMs after a recorded run; once does not wait for that, and nothing is lost', async () => {
    const machines = new Machines();
    const lost = vi.fn();
    const stop = onLockEvent('locks:lost', lost);
    const released = vi.fn();
    const stopReleased = onLockEvent('locks:released', released);
    const startedAt = performance.now();
    expect(await machines.call('a', 0, { atLeastMs: 400 })).toMatchObject({ status: 'ran' });
    expect(await machines.locks.isLocked('invoices')).toBe(true);
    // What is left of it in the store is little more than the least time.
    const { holders } = await machines.locks.inspect('invoices');
    expect(holders[0]?.expiresInMs).toBeLessThan(2_000);
    expect(await machines.call('b', 0)).toMatchObject({ status: 'running-elsewhere' });
    await until(async () => expect(await machines.locks.isLocked('invoices')).toBe(false));
    expect(performance.now() - startedAt).toBeGreaterThan(390);
    expect(released).toHaveBeenCalled();
    expect(lost).not.toHaveBeenCalled();
    stop();
    stopReleased();
  });

  it('is given back at once where nothing ran', async () => {
    const machines = new Machines();
    await machines.call('a', 0);
    expect(await machines.call('b', 0, { atLeastMs: MINUTE })).toMatchObject({ status: 'done-before' });
    expect(await machines.locks.isLocked('invoices')).toBe(false);
  });

  it('shows the label, and the run has what it needs', async () => {
    const machines = new Machines();
    await machines.call('machine 7', 0, {}, async (run) => {
      const { slot, fencingToken, acquisitionId, signal, assertValid } = run;
      const { holders } = await machines.locks.inspect('invoices');
      expect(holders).toMatchObject([{ label: 'machine 7', fencingToken, acquisitionId }]);
      expect(run.validForMs).toBeGreaterThan(9 * MINUTE);
      expect([slot, signal.aborted]).toEqual(['2026-11-22T12:00:00.000Z', false]);
      assertValid(MINUTE);
      expect(() => assertValid(11 * MINUTE)).toThrow(expect.objectContaining({ code: 'LOCK_EXPIRES_SOON' }));
      machines.memory.advance(MINUTE);
      expect(run.validForMs).toBeLessThan(9 * MINUTE + 1_000);
    });
  });
});

describe('the signal', () => {
  it('that has aborted runs nothing; one that aborts ends the wait, or aborts that of the job', async () => {
    const machines = new Machines();
    const gone = AbortSignal.abort(new Error('shutting down'));
    await expect(machines.call('a', 0, { signal: gone })).rejects.toThrow('shutting down');
    const stop = new AbortController();
    const running = machines.call('a', 0, { signal: stop.signal }, untilAborted);
    await until(() => expect(machines.ran).toHaveLength(1));
    const waiting = machines.call('b', 0, { signal: stop.signal, waitMs: Number.POSITIVE_INFINITY });
    await until(async () => expect((await machines.locks.inspect('invoices')).waiters).toHaveLength(1));
    const reason = new Error('shutting down');
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(running).rejects.toBe(reason);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    expect(machines.slots.written).toEqual([]);
  });
});
