import { onLockEvent } from '@locks/core';
import { describe, expect, it, vi } from 'vitest';
import { day, every, type SlotStore, resetSlot, runCoordinator, type SlotEntry } from '../src/index.ts';
import { Machines, MINUTE } from './machine.ts';

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const skew = { code: 'LOCK_CLOCK_SKEW', lockName: 'invoices' };

/** The outcome of the use, with the warnings and the events of slots that are ahead. */
async function withReports<T>(use: () => Promise<T>) {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
  const events: unknown[] = [];
  const stop = onLockEvent('locks:slot-ahead', (event) => events.push(event));
  try {
    const result = await use();
    return {
      result,
      events,
      codes: warn.mock.calls.map(([, options]) => (options as { code?: string }).code),
    };
  } finally {
    stop();
    warn.mockRestore();
  }
}

describe('a machine whose clock is ahead', () => {
  it.each([
    ['by minutes, before the boundary', every(10 * MINUTE), 10 * MINUTE],
    ['by a day', day(), DAY],
    ['by a year', day({ timeZone: 'Europe/Berlin', startsAt: '12:00' }), 400 * DAY],
  ])('%s is refused, and the others run', async (_, slot, aheadMs) => {
    const machines = new Machines();
    machines.now += 8 * MINUTE;
    for (const retry of ['next-machine', 'next-slot'] as const) {
      await expect(machines.call('ahead', aheadMs, { slot, retry })).rejects.toMatchObject(skew);
    }
    expect(machines.ran).toEqual([]);
    expect(machines.slots.written).toEqual([]);
    expect(await machines.locks.isLocked('invoices')).toBe(false);
    expect(await machines.call('a', 0, { slot })).toMatchObject({ status: 'ran' });
  });

  it('is refused also where it has recorded that slot before', async () => {
    const machines = new Machines();
    machines.slots.time = () => machines.now + DAY;
    await machines.call('ahead', DAY, { slot: day() });
    machines.slots.time = () => machines.now;
    await expect(machines.call('ahead', DAY, { slot: day() })).rejects.toMatchObject(skew);
  });

  it('in the same slot as the store runs the job', async () => {
    const machines = new Machines();
    expect(await machines.call('ahead', 11 * HOUR, { slot: day() })).toMatchObject({ status: 'ran' });
    expect(await machines.call('a', 0, { slot: day() })).toMatchObject({ status: 'done-before' });
  });

  it("is refused by this machine's clock where the slot store tells no time, from the slot after the next one on", async () => {
    const machines = new Machines();
    machines.slots.time = () => undefined;
    machines.now = Date.now();
    for (const slot of [day(), every(10 * MINUTE)]) {
      await expect(machines.call('queue', 3 * DAY, { slot })).rejects.toMatchObject(skew);
    }
    expect(machines.slots.written).toEqual([]);
    expect(await machines.call('queue', DAY, { slot: day() })).toMatchObject({ status: 'ran' });
  });

  it('is refused as the machine of a task of node-cron, whose slots have no length', async () => {
    const machines = new Machines();
    const coordinator = runCoordinator(machines.locks, { slots: machines.slots });
    const keyOf = (ms: number): string => `invoices:${new Date(machines.now + ms).toISOString()}`;
    await expect(coordinator.shouldRun(keyOf(DAY), MINUTE)).rejects.toMatchObject(skew);
    expect(await coordinator.shouldRun(keyOf(1), MINUTE)).toBe(true);
    await coordinator.onComplete(keyOf(1));
  });

  it('keeps nobody waiting for long with a slot that no later one follows', async () => {
    const machines = new Machines();
    machines.slots.time = () => undefined;
    expect(await machines.call('a', 0, { slot: () => 'only' })).toMatchObject({ status: 'ran' });
    const late = await withReports(() => machines.call('a', 0, { slot: () => 'before' }));
    expect(late).toMatchObject({
      result: { status: 'slot-over', isSlotAhead: false },
      events: [],
      codes: [],
    });
  });
});

describe('a slot store with a slot of the future', () => {
  const FUTURE: SlotEntry = { slot: '2028-01-02', state: 'done', token: 1n, label: 'fast', at: 0 };

  it.each([
    ['the store', (machines: Machines) => machines.now],
    ['this machine', () => undefined],
  ])('by the time of %s is reported at every call', async (_, time) => {
    const machines = new Machines();
    machines.slots.time = () => time(machines);
    machines.slots.entries.set('invoices', FUTURE);
    const { result, events, codes } = await withReports(() => machines.call('a', 0, { slot: day() }));
    expect(result).toEqual({
      ...{ status: 'slot-over', slot: '2026-11-22', recorded: FUTURE, isSlotAhead: true },
    });
    expect(events).toEqual([
      { name: 'invoices', slot: '2026-11-22', recordedSlot: '2028-01-02', recordedBy: 'fast' },
    ]);
    expect(codes).toEqual(['LOCKS_SLOT_AHEAD']);
  });

  it('is not reported for a late machine, nor for the next slot by a clock that may be wrong itself', async () => {
    const machines = new Machines();
    const call = (aheadMs: number) =>
      withReports(() => machines.call('a', aheadMs, { slot: every(10 * MINUTE) }));
    await call(0);
    const quiet = { result: { status: 'slot-over', isSlotAhead: false }, events: [], codes: [] };
    expect(await call(-10 * MINUTE)).toMatchObject(quiet);
    machines.slots.time = () => undefined;
    machines.now = Date.now() + 10 * MINUTE;
    await call(0);
    machines.now -= 10 * MINUTE;
    expect(await call(0)).toMatchObject(quiet);
  });

  it('is reset, with a newer token, and the job runs again', async () => {
    const machines = new Machines();
    const { locks, slots } = machines;
    slots.entries.set('invoices', FUTURE);
    // Tokens rise from 1.
    await locks.lock('invoices').run(() => undefined);
    expect(await resetSlot(locks, 'invoices', { slots, label: 'me' })).toEqual(FUTURE);
    const reset = slots.entries.get('invoices');
    expect(reset).toMatchObject({ slot: '2028-01-02', state: 'reset', label: 'me' });
    expect(reset?.token).toBeGreaterThan(FUTURE.token);
    expect(await locks.isLocked('invoices')).toBe(false);
    for (const retry of ['next-machine', 'next-slot'] as const) {
      slots.entries.set('invoices', { ...FUTURE, state: 'reset' });
      expect(await machines.call('a', 0, { slot: day(), retry })).toMatchObject({ status: 'ran' });
      expect(await machines.call('b', 0, { slot: day(), retry })).toMatchObject({ status: 'done-before' });
    }
  });
});

describe('resetSlot', () => {
  it('waits for the run that is under way, and refuses after waitMs', async () => {
    const machines = new Machines();
    const { locks, slots } = machines;
    let end = (): void => {};
    const running = machines.call('a', 0, {}, () => new Promise<void>((resolve) => (end = resolve)));
    await vi.waitFor(() => expect(machines.ran).toHaveLength(1));
    const refused = resetSlot(locks, 'invoices', { slots, waitMs: 0 });
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_CONTENDED' });
    const waits = resetSlot(locks, 'invoices', { slots });
    await vi.waitFor(async () => expect((await locks.inspect('invoices')).waiters).toHaveLength(1));
    end();
    await running;
    expect(await waits).toMatchObject({ state: 'done', label: 'a' });
  });

  it('writes nothing where there is no entry, and refuses a lock whose tokens have gone back', async () => {
    const { locks, slots } = new Machines();
    expect(await resetSlot(locks, 'invoices', { slots })).toBeUndefined();
    expect(slots.written).toEqual([]);
    const newer: SlotEntry = { slot: 's', state: 'done', token: 1n << 62n, label: 'x', at: 0 };
    slots.entries.set('invoices', newer);
    await expect(resetSlot(locks, 'invoices', { slots })).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(slots.entries.get('invoices')).toBe(newer);
  });

  it('refuses bad arguments, and a backend without tokens', async () => {
    const { locks, slots } = new Machines();
    const invalid = { code: 'LOCK_INVALID_ARGUMENT' };
    for (const options of [undefined, {}, { slots: {} }, { slots, slot: 'a' }, { slots, waitMs: -1 }])
      await expect(resetSlot(locks, 'a', options as never)).rejects.toMatchObject(invalid);
    await expect(resetSlot({} as never, 'a', { slots })).rejects.toMatchObject(invalid);
    const capabilities = { ...locks.capabilities, fencing: 'none' as const };
    const without = { capabilities, lock: locks.lock.bind(locks) } as unknown as typeof locks;
    const reads = vi.spyOn(slots as SlotStore, 'read');
    await expect(resetSlot(without, 'a', { slots })).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
    expect(reads).not.toHaveBeenCalled();
  });
});
