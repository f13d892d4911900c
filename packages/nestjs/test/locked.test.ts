import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type LockManager } from '@locks/core';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { Locked, LOCKS, LocksModule } from '@locks/nestjs';
import { Controller, Injectable, Scope, SetMetadata, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';

@Injectable()
class Stock {
  inside = 0;
  most = 0;

  @Locked((sku: string) => `stock:${sku}`)
  async sell(sku: string, count = 1): Promise<string> {
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    await sleep(2);
    this.inside -= 1;
    return `${count} of ${sku}`;
  }

  @Locked()
  async audit(names: () => readonly string[]): Promise<readonly string[]> {
    return names();
  }

  @Locked('recount', { whenContended: 'refuse' })
  async recount(): Promise<void> {}
}

@Injectable()
class SmallStock extends Stock {
  @Locked('extra')
  async extra(names: () => readonly string[]): Promise<readonly string[]> {
    return names();
  }
}

async function application(
  provider: Type,
  more: object = {},
): Promise<{ module: TestingModule; store: MemoryStore }> {
  const store = new MemoryStore();
  const locks = LocksModule.forRoot({ backend: memoryBackend(store), drainMs: 0 });
  const metadata = { imports: [locks], providers: [provider], ...more };
  return { store, module: await Test.createTestingModule(metadata).compile() };
}

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

describe('@Locked()', () => {
  it('lets calls with one name in one after the other, and calls with others beside them', async () => {
    const { module } = await application(Stock);
    const stock = module.get(Stock);
    expect(await Promise.all([1, 2, 3].map((count) => stock.sell('a', count)))).toEqual([
      '1 of a',
      '2 of a',
      '3 of a',
    ]);
    expect(stock.most).toBe(1);
    await Promise.all([stock.sell('a'), stock.sell('b')]);
    expect(stock.most).toBe(2);
    await module.close();
  });

  it('locks under the name of class and method where no name is given, in a subclass too', async () => {
    const { module, store } = await application(SmallStock);
    const stock = module.get(SmallStock);
    const held = (): string[] => [...store.names()].filter((name) => store.holders(name).length > 0);
    expect(await stock.audit(held)).toEqual(['Stock.audit']);
    expect(await stock.extra(held)).toEqual(['extra']);
    await module.close();
  });

  it('excludes other applications on the same store', async () => {
    const { module, store } = await application(Stock);
    await using others = createLocks(memoryBackend(store));
    await using _lease = await others.lock('recount').acquire();
    await expect(module.get(Stock).recount()).rejects.toMatchObject({ code: 'LOCK_CONTENDED' });
    await module.close();
  });

  it('works in controllers and in providers of a request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest extends Stock {}
    @Controller()
    class Shop extends Stock {}
    const { module } = await application(OfRequest, { controllers: [Shop] });
    expect(await (await module.resolve(OfRequest)).sell('a')).toBe('1 of a');
    expect(await module.get(Shop).sell('a')).toBe('1 of a');
    await module.close();
  });

  it('keeps the metadata of decorators above and below', async () => {
    class Decorated {
      @SetMetadata('above', 1)
      @Locked('a')
      @SetMetadata('below', 2)
      async work(): Promise<void> {}
    }
    const { work } = Decorated.prototype;
    expect([Reflect.getMetadata('above', work), Reflect.getMetadata('below', work)]).toEqual([1, 2]);
  });

  it('says that Nest has not made the instance', async () => {
    await expect(new Stock().sell('a')).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    await expect(new Stock().sell('a')).rejects.toThrow('Nest has not made this instance of Stock');
  });

  it('rejects with LOCK_CLOSED once the application is closed', async () => {
    const { module } = await application(Stock);
    const stock = module.get(Stock);
    await module.close();
    await expect(stock.sell('a')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });

  it('refuses bad options, and what it cannot decorate, at once', () => {
    const decorate = Locked('a') as (...args: unknown[]) => unknown;
    const method = { value: async () => {} };
    expect(() => Locked(5 as never)).toThrow(invalid);
    expect(() => Locked('a', { waitMS: 5 } as never)).toThrow(invalid);
    // A static method, an accessor, a property, a class, a decorator of the TC39 standard.
    expect(() => decorate(Stock, 'make', method)).toThrow(invalid);
    expect(() => decorate(Stock.prototype, 'x', { get: () => 1 })).toThrow(invalid);
    expect(() => decorate(Stock.prototype, 'x', undefined)).toThrow(invalid);
    expect(() => decorate(Stock, undefined, undefined)).toThrow(invalid);
    expect(() => decorate(method.value, { kind: 'method', name: 'x' }, undefined)).toThrow(
      'experimentalDecorators',
    );
  });

  it('does not let an application start that has no LocksModule', async () => {
    await expect(Test.createTestingModule({ providers: [Stock] }).compile()).rejects.toThrow('LOCKS');
  });

  it('uses a manager that was provided in the place of the own one', async () => {
    const store = new MemoryStore();
    const locks = createLocks(memoryBackend(store)) as LockManager;
    const provider = { provide: LOCKS, useValue: locks };
    const module = await Test.createTestingModule({ providers: [provider, Stock] }).compile();
    expect(await module.get(Stock).audit(() => [...store.names()])).toEqual(['Stock.audit']);
    await module.close();
    await locks.close();
  });
});
