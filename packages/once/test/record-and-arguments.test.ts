import { createLocks, type FencedLease, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { coalesce, newestWins, once, type OnceOptions, textRecord } from '../src/index.ts';
import { Machines, MINUTE } from './machine.ts';

describe('a record', () => {
  it('whose tokens are newer than those of the lock runs nothing, and says so', async () => {
    const machines = new Machines();
    await machines.call('a', 0);
    const { entries } = machines.record;
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
      { slot: '', state: 'done', token },
      { slot: 'a', state: 'done', token: '1' },
    ]) {
      const record = { read: async () => odd as unknown as undefined, write: async () => true };
      await expect(machines.call('a', 0, { record })).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    expect(machines.ran).toEqual([]);
    const record = { read: async () => undefined, write: async () => undefined as unknown as boolean };
    await expect(machines.call('a', 0, { record })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });

  it('of texts gives back what was written, and refuses what it cannot read', async () => {
    const texts = new Map<string, string>();
    const record = textRecord({
      get: async (key) => texts.get(key) ?? null,
      set: async (key, value) => void texts.set(key, value),
    });
    const machines = new Machines();
    expect(await record.read('invoices')).toBeUndefined();
    expect(await machines.call('a', 0, { record })).toMatchObject({ status: 'ran' });
    expect([...texts.keys()]).toEqual(['once:invoices']);
    expect(await machines.call('b', 0, { record })).toMatchObject({
      status: 'done-before',
      recorded: { label: 'a', token: expect.any(BigInt) as bigint },
    });
    texts.set('once:invoices', 'something else');
    await expect(machines.call('b', 0, { record })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    const refused = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    expect(() => textRecord({} as never)).toThrow(refused);
    const store = { get: async () => null, set: async () => {}, prefx: 'job:' };
    expect(() => textRecord(store)).toThrow(refused);
    expect(() => textRecord(store)).toThrow(/"prefx"/);
    class Texts {
      readonly prefix = 'job:';
      async get() {
        return undefined;
      }
      async set() {}
    }
    expect(() => textRecord(new Texts())).not.toThrow();
  });
});

describe('the arguments', () => {
  it('are refused at once where they are wrong, and nothing is asked of the store or of the record', async () => {
    const machines = new Machines();
    const attempt = vi.spyOn(machines.memory, 'attempt');
    const read = vi.spyOn(machines.record, 'read');
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
      { record: {} },
      { record: undefined },
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
    const { record } = machines;
    const options: OnceOptions = { slot: () => 'a', atMostMs: 1_000, record, retry: 'next-machine' };
    await expect(once(machines.locks, 'a', options, 5 as never)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    await expect(once(machines.locks, '', options, () => 5)).rejects.toMatchObject({
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
    const { record } = new Machines();
    const options: OnceOptions = { slot: () => 'a', atMostMs: 1_000, record, retry: 'next-machine' };
    await expect(once(locks, 'a', options, () => 5)).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });
});

it.each([null, undefined, {}, 'locks'])('refuses %s in place of the lock manager', async (locks) => {
  const given = locks as unknown as Parameters<typeof newestWins>[0];
  const calls = [
    coalesce(given, 'a', () => 1),
    newestWins(given, 'a', () => 1),
    once(given as unknown as Parameters<typeof once>[0], 'a', {} as OnceOptions, () => 1),
  ];
  for (const outcome of await Promise.allSettled(calls)) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_INVALID_ARGUMENT' } });
    expect(String((outcome as PromiseRejectedResult).reason)).toContain(
      'the first argument must be a lock manager',
    );
  }
});
