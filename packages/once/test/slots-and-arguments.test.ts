import { createLocks, type FencedLease, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { coalesce, newestWins, once, type OnceOptions, textSlots } from '../src/index.ts';
import { Machines, MINUTE } from './machine.ts';

describe('a slot store', () => {
  it('whose tokens are newer than those of the lock runs nothing, and says so', async () => {
    const machines = new Machines();
    await machines.call('a', 0);
    const { entries } = machines.slots;
    const entry = entries.get('invoices');
    if (entry !== undefined) entries.set('invoices', { ...entry, token: 1n << 62n });
    machines.now += 10 * MINUTE;
    await expect(machines.call('a', 0)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(machines.ran).toHaveLength(1);
  });

  it('that gives or takes something else is refused', async () => {
    const machines = new Machines();
    const token = 1n;
    for (const odd of [
      null,
      5,
      {},
      { slot: 'a', state: 'done', token },
      { entry: { slot: '', state: 'done', token } },
      { entry: { slot: 'a', state: 'done', token: '1' } },
      { entry: undefined, storeTime: '1' },
    ]) {
      const slots = { read: async () => odd as never, write: async () => true };
      await expect(machines.call('a', 0, { slots })).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    expect(machines.ran).toEqual([]);
    const read = async () => ({ entry: undefined, storeTime: undefined });
    const slots = { read, write: async () => undefined as unknown as boolean };
    await expect(machines.call('a', 0, { slots })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });

  it('of texts gives back what was written, and refuses what it cannot read', async () => {
    const texts = new Map<string, string>();
    const slots = textSlots({
      get: async (key) => texts.get(key) ?? null,
      set: async (key, value) => void texts.set(key, value),
    });
    const machines = new Machines();
    expect(await slots.read('invoices')).toEqual({ entry: undefined, storeTime: undefined });
    // Such a store tells no time: what counts is that of this machine.
    machines.now = Date.now();
    expect(await machines.call('a', 0, { slots })).toMatchObject({ status: 'ran' });
    expect([...texts.keys()]).toEqual(['once:invoices']);
    expect(await machines.call('b', 0, { slots })).toMatchObject({
      status: 'done-before',
      recorded: { label: 'a', token: expect.any(BigInt) as bigint },
    });
    texts.set('once:invoices', 'something else');
    await expect(machines.call('b', 0, { slots })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    const refused = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    expect(() => textSlots({} as never)).toThrow(refused);
    const store = { get: async () => null, set: async () => {}, prefx: 'job:' };
    expect(() => textSlots(store)).toThrow(refused);
    expect(() => textSlots(store)).toThrow(/"prefx"/);
    class Texts {
      readonly prefix = 'job:';
      async get() {
        return undefined;
      }
      async set() {}
    }
    expect(() => textSlots(new Texts())).not.toThrow();
  });
});

describe('the arguments', () => {
  it('are refused at once where they are wrong, and nothing is asked of the store or of the slot store', async () => {
    const machines = new Machines();
    const attempt = vi.spyOn(machines.memory, 'attempt');
    const read = vi.spyOn(machines.slots, 'read');
    const wrong: Partial<Record<keyof OnceOptions, unknown>>[] = [
      { slot: 'today' },
      { slot: () => '' },
      { slot: () => 5 },
      { clock: () => Number.NaN },
      { clock: 5 },
      { atMostMs: 0 },
      { atMostMs: 2 ** 31 },
      { atMostMs: 1_000, atLeastMs: 1_001 },
      { keepAlive: 'yes' },
      { maxRunMs: 5_000 },
      { keepAlive: true, maxRunMs: 0 },
      { keepAlive: true, maxRunMs: 2 ** 31 },
      { slots: {} },
      { slots: undefined },
      { retry: 'never' },
      { retry: undefined },
      { waitMs: -1 },
      { signal: {} },
      { label: 'a\nb' },
    ];
    for (const options of wrong) {
      await expect(machines.call('a', 0, options as Partial<OnceOptions>)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    const { slots } = machines;
    const options: OnceOptions = { slot: () => 'a', atMostMs: 1_000, slots, retry: 'next-machine' };
    await expect(once(machines.locks, 'a', 5 as never, options)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    await expect(once(machines.locks, '', () => 5, options)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    expect(attempt).not.toHaveBeenCalled();
    expect(read).not.toHaveBeenCalled();
  });

  it('a backend without fencing tokens is refused', async () => {
    const memory = memoryBackend();
    const capabilities = { ...memory.capabilities, fencing: 'none' } as const;
    const without = new Proxy(memory, {
      get: (target, key) => (key === 'capabilities' ? capabilities : Reflect.get(target, key)),
    });
    const locks = createLocks(without) as LockManager as LockManager<FencedLease>;
    const { slots } = new Machines();
    const options: OnceOptions = { slot: () => 'a', atMostMs: 1_000, slots, retry: 'next-machine' };
    await expect(once(locks, 'a', () => 5, options)).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });
});

it.each([null, undefined, {}, 'locks'])('refuses %s in place of the lock manager', async (locks) => {
  const given = locks as unknown as Parameters<typeof newestWins>[0];
  const calls = [
    coalesce(given, 'a', () => 1),
    newestWins(given, 'a', () => 1),
    once(given as unknown as Parameters<typeof once>[0], 'a', () => 1, {} as OnceOptions),
  ];
  for (const outcome of await Promise.allSettled(calls)) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_INVALID_ARGUMENT' } });
    expect(String((outcome as PromiseRejectedResult).reason)).toContain(
      'the first argument must be a lock manager',
    );
  }
});
