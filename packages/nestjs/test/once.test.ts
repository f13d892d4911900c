import { MemoryStore, memoryBackend } from '@locks/memory';
import { LocksModule, Once, type OnceMethodOptions } from '@locks/nestjs';
import { memorySlots } from '@locks/nestjs/testing';
import { every, type SlotStore, type OnceResult, type OnceRun } from '@locks/once';
import { Injectable, type LoggerService, SetMetadata, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';

const MINUTE = 60_000;
const NOON = Date.parse('2030-01-01T12:00:00Z');

/** A class with a job, and what its runs and calls were told. */
function jobs(more: Partial<OnceMethodOptions> = {}) {
  const seen = { now: NOON, runs: [] as OnceRun[], statuses: [] as string[], fails: false };
  const options: OnceMethodOptions = {
    slot: every(10 * MINUTE),
    atMostMs: MINUTE,
    retry: 'next-machine',
    clock: () => seen.now,
    onResult: ({ status }: OnceResult<void>) => void seen.statuses.push(status),
    ...more,
  };
  @Injectable()
  class Jobs {
    @Once('invoices', options)
    async invoices(run?: OnceRun): Promise<void> {
      if (seen.fails) throw new Error('no mail server');
      seen.runs.push(run as OnceRun);
    }
  }
  return { Jobs, seen };
}

async function machine(
  provider: Type,
  store: MemoryStore,
  slots?: SlotStore,
  logger?: LoggerService,
): Promise<TestingModule> {
  const locks = LocksModule.forRoot({ backend: memoryBackend(store), slots, drainMs: 0 });
  const builder = Test.createTestingModule({ imports: [locks], providers: [provider] });
  return (logger === undefined ? builder : builder.setLogger(logger)).compile();
}

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

describe('@Once()', () => {
  it('runs a slot on one machine of two, and the next slot again', async () => {
    const { Jobs, seen } = jobs({ waitMs: 10_000 });
    const [store, slots] = [new MemoryStore(), memorySlots(() => seen.now)];
    const machines = await Promise.all([machine(Jobs, store, slots), machine(Jobs, store, slots)]);
    const call = () => Promise.all(machines.map((one) => one.get(Jobs).invoices()));
    await call();
    await call();
    expect(seen.statuses.toSorted()).toEqual(['done-before', 'done-before', 'done-before', 'ran']);
    seen.now += 10 * MINUTE;
    await call();
    expect(seen.runs.map(({ slot }) => slot)).toEqual([
      '2030-01-01T12:00:00.000Z',
      '2030-01-01T12:10:00.000Z',
    ]);
    expect((seen.runs[1] as OnceRun).fencingToken).toBeGreaterThan((seen.runs[0] as OnceRun).fencingToken);
    await Promise.all(machines.map((one) => one.close()));
  });

  it('rejects as the method does, and runs the slot again', async () => {
    const { Jobs, seen } = jobs();
    const module = await machine(
      Jobs,
      new MemoryStore(),
      memorySlots(() => seen.now),
    );
    seen.fails = true;
    await expect(module.get(Jobs).invoices()).rejects.toThrow('no mail server');
    seen.fails = false;
    await module.get(Jobs).invoices();
    expect(seen.statuses).toEqual(['ran']);
    await module.close();
  });

  it('takes its own slot store before that of the module, which then needs none', async () => {
    const slots = memorySlots(() => NOON);
    const { Jobs, seen } = jobs({ slots });
    const module = await machine(Jobs, new MemoryStore());
    await module.get(Jobs).invoices();
    expect(seen.statuses).toEqual(['ran']);
    expect(await slots.read('invoices')).toMatchObject({ entry: { state: 'done' } });
    await module.close();
  });

  it('says that there is no slot store, and that Nest has not made the instance', async () => {
    const { Jobs, seen } = jobs();
    const module = await machine(Jobs, new MemoryStore());
    await expect(module.get(Jobs).invoices()).rejects.toThrow('has no slot store');
    await expect(module.get(Jobs).invoices()).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    await expect(new Jobs().invoices()).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    expect(seen.runs).toEqual([]);
    await module.close();
  });

  it("tells Nest's logger what became of a call where there is no onResult", async () => {
    const lines: unknown[] = [];
    const ignore = (): void => {};
    const debug = (line: unknown): void => void lines.push(line);
    const errors: unknown[] = [];
    const error = (line: unknown): void => void errors.push(line);
    const logger: LoggerService = { debug, log: ignore, error, warn: ignore };
    const slots = memorySlots(() => NOON);
    const { Jobs } = jobs({ onResult: undefined });
    const module = await machine(Jobs, new MemoryStore(), slots, logger);
    await module.get(Jobs).invoices();
    expect(lines).toContain('invoices, 2030-01-01T12:00:00.000Z: ran');
    const ahead = { slot: '2032', state: 'done', token: 1n << 40n, label: 'fast', at: 0 } as const;
    await slots.write('invoices', ahead);
    await module.get(Jobs).invoices();
    expect(errors).toEqual([expect.stringContaining('slot-over: the recorded slot 2032 lies in the future')]);
    await module.close();
  });

  it('keeps the metadata of decorators above and below, as that of a cron', () => {
    const { slot, atMostMs, retry } = { slot: every(MINUTE), atMostMs: MINUTE, retry: 'next-slot' } as const;
    class Decorated {
      @SetMetadata('above', 1)
      @Once('a', { slot, atMostMs, retry })
      @SetMetadata('below', 2)
      async work(): Promise<void> {}
    }
    const { work } = Decorated.prototype;
    expect([Reflect.getMetadata('above', work), Reflect.getMetadata('below', work)]).toEqual([1, 2]);
  });

  it('refuses bad options, and what it cannot decorate, at once', () => {
    const good = { slot: every(MINUTE), atMostMs: MINUTE, retry: 'next-slot' } as const;
    for (const bad of [
      undefined,
      {},
      { ...good, slot: 'day' },
      { ...good, atMostMs: 0.5 },
      { ...good, retry: 'never' },
      { ...good, waitMs: -1 },
      { ...good, slots: {} },
      { ...good, onResult: 5 },
      { ...good, waitMS: 5 },
      { ...good, signal: new AbortController().signal },
    ])
      expect(() => Once('a', bad as never)).toThrow(invalid);
    for (const name of ['', undefined, 5]) expect(() => Once(name as never, good)).toThrow(invalid);
    const decorate = Once('a', good) as (...args: unknown[]) => unknown;
    expect(() => decorate(class {}, 'make', { value: async () => {} })).toThrow(invalid);
    expect(() => decorate({}, 'x', undefined)).toThrow(invalid);
    expect(() => decorate(() => {}, { kind: 'method', name: 'x' }, undefined)).toThrow(
      'experimentalDecorators',
    );
  });
});
