import { describe, expect, it } from 'vitest';
import { runCoordinator, type RunCoordinatorOptions } from '../src/index.ts';
import { Machines, MINUTE } from './machine.ts';

const NOON = 'invoices:eu:2026-11-22T12:00:00.000Z';
const LATER = 'invoices:eu:2026-11-22T12:10:00.000Z';
const TTL_MS = 60_000;

function machine(machines: Machines, label: string, more: Partial<RunCoordinatorOptions> = {}) {
  return runCoordinator(machines.locks, { slots: machines.slots, label, ...more });
}

describe('runCoordinator', () => {
  it('lets one machine run, each time', async () => {
    const machines = new Machines();
    const [a, b] = ['a', 'b'].map((label) => machine(machines, label));
    expect(await a?.shouldRun(NOON, TTL_MS)).toBe(true);
    expect(await b?.shouldRun(NOON, TTL_MS)).toBe(false);
    await a?.onComplete(NOON);
    expect(machines.slots.entries.get('invoices:eu')).toMatchObject({
      slot: '2026-11-22T12:00:00.000Z',
      state: 'done',
      label: 'a',
    });
    // A machine whose clock is late.
    expect(await b?.shouldRun(NOON, TTL_MS)).toBe(false);
    machines.now += 10 * MINUTE;
    expect(await b?.shouldRun(LATER, TTL_MS)).toBe(true);
    await b?.onComplete(LATER);
    expect(await a?.shouldRun(NOON, TTL_MS)).toBe(false);
    expect(await machines.locks.isLocked('invoices:eu')).toBe(false);
  });

  it('lets a machine that waits run where the first one died, and not where it has done', async () => {
    const machines = new Machines();
    expect(await machine(machines, 'a', { maxRunMs: 200 }).shouldRun(NOON, 200)).toBe(true);
    // The lock is no longer renewed, as after a death.
    const heir = machine(machines, 'b', { waitMs: Number.POSITIVE_INFINITY });
    expect(await heir.shouldRun(NOON, TTL_MS)).toBe(true);
    const late = machine(machines, 'c', { waitMs: Number.POSITIVE_INFINITY }).shouldRun(NOON, TTL_MS);
    await heir.onComplete(NOON);
    expect(await late).toBe(false);
  });

  it('with `next-slot` lets nobody run again what a machine has begun that died', async () => {
    const machines = new Machines();
    const nextSlot = { retry: 'next-slot' } as const;
    expect(await machine(machines, 'a', { ...nextSlot, maxRunMs: 200 }).shouldRun(NOON, 200)).toBe(true);
    const heir = machine(machines, 'b', { ...nextSlot, waitMs: Number.POSITIVE_INFINITY });
    expect(await heir.shouldRun(NOON, TTL_MS)).toBe(false);
    machines.now += 10 * MINUTE;
    expect(await heir.shouldRun(LATER, TTL_MS)).toBe(true);
    await heir.onComplete(LATER);
  });

  it('tells where a run could not be recorded, and lets no machine run where the slot store cannot be read', async () => {
    const machines = new Machines();
    const away = (): never => {
      throw new Error('the database is away');
    };
    const a = machine(machines, 'a');
    machines.slots.before.read = away;
    await expect(a.shouldRun(NOON, TTL_MS)).rejects.toThrow('the database is away');
    expect(await a.shouldRun(NOON, TTL_MS)).toBe(true);
    machines.slots.before.write = away;
    await expect(a.onComplete(NOON)).rejects.toThrow('the database is away');
    expect(await machines.locks.isLocked('invoices:eu')).toBe(false);
    // Not recorded, so it may run again.
    expect(await a.shouldRun(NOON, TTL_MS)).toBe(true);
    await a.onComplete(NOON);
  });

  it('refuses what is no key of a run, and a bad option', async () => {
    const machines = new Machines();
    await expect(machine(machines, 'a').shouldRun('invoices', TTL_MS)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    for (const options of [{}, { slots: {} }, { slots: machines.slots, retries: 3 }]) {
      expect(() => runCoordinator(machines.locks, options as never)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    }
  });
});
