import { setTimeout as sleep } from 'node:timers/promises';
import { Locked, Once } from '@locks/nestjs';
import {
  LOCKS_MEMORY,
  LocksTestingModule,
  memorySlots,
  type MemoryTestBackend,
  memoryTestBackend,
} from '@locks/nestjs/testing';
import { day } from '@locks/once';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';

@Injectable()
class Stock {
  reports = 0;

  @Locked((sku: string) => `stock:${sku}`, { waitMs: 1_000 })
  async sell(_sku: string, ms = 0): Promise<string> {
    await sleep(ms);
    return 'sold';
  }

  @Once('report', { slot: day(), atMostMs: 1_000, retry: 'next-slot', clock: () => 0 })
  async report(): Promise<void> {
    this.reports += 1;
  }
}

const compile = (options?: Parameters<typeof LocksTestingModule.forRoot>[0]): Promise<TestingModule> =>
  Test.createTestingModule({ imports: [LocksTestingModule.forRoot(options)], providers: [Stock] }).compile();

describe('LocksTestingModule', () => {
  it('gives locks that are lost, refused and out of reach on demand', async () => {
    const module = await compile();
    const memory = module.get<MemoryTestBackend>(LOCKS_MEMORY);
    const stock = module.get(Stock);
    expect(await stock.sell('a')).toBe('sold');

    const selling = stock.sell('a', 50);
    await sleep(10);
    expect(memory.lose('stock:a')).toBe(1);
    await expect(selling).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });

    const allow = memory.refuse('stock:a');
    const refused = expect(stock.sell('a')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await sleep(10);
    memory.advance(1_000);
    await refused;
    allow();

    const repair = memory.fail();
    await expect(stock.sell('a')).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    repair();
    expect(await stock.sell('a')).toBe('sold');
    await module.close();
  });

  it('has a slot store in memory, and takes one', async () => {
    const slots = memorySlots();
    const [one, two] = [await compile(), await compile({ slots, memory: memoryTestBackend() })];
    for (const module of [one, two]) {
      await module.get(Stock).report();
      await module.get(Stock).report();
      expect(module.get(Stock).reports).toBe(1);
      await module.close();
    }
    expect(await slots.read('report')).toMatchObject({ entry: { slot: '1970-01-01', state: 'done' } });
  });

  it('a slot store in memory refuses a token below the one that wrote last', async () => {
    const slots = memorySlots();
    const entry = (token: bigint) => ({ slot: 's', state: 'done', token, label: 'x', at: 0 }) as const;
    expect(await slots.write('a', entry(2n))).toBe(true);
    expect(await slots.write('a', entry(2n))).toBe(true);
    expect(await slots.write('a', entry(1n))).toBe(false);
    expect(await slots.read('a')).toMatchObject({ entry: { token: 2n } });
  });

  it.each([
    ['an unknown option', { backend: memoryTestBackend() }],
    ['a store without faults', { memory: {} }],
    ['a slot store that is none', { slots: {} }],
  ])('refuses %s', (_, options) => {
    expect(() => LocksTestingModule.forRoot(options as never)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
