import { createLocks, type LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import {
  InjectLocks,
  LOCKS,
  LOCKS_OPTIONS,
  LocksModule,
  type LocksModuleOptions,
  ONCE_RECORD,
} from '@locks/nestjs';
import { Inject, Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';

type Root = Parameters<typeof LocksModule.forRoot>[0];

@Injectable()
class Stock {
  readonly locks: LockManager;
  constructor(@InjectLocks() locks: LockManager) {
    this.locks = locks;
  }
}

@Module({ providers: [Stock] })
class StockModule {}

// A shutdown that fails is logged by Nest.
const silent = { log() {}, warn() {}, error() {} };
const compile = (...imports: object[]): Promise<TestingModule> =>
  Test.createTestingModule({ imports: imports as never })
    .setLogger(silent)
    .compile();
const onMemory = (more: Partial<Root> = {}): Root => ({ backend: memoryBackend(), drainMs: 0, ...more });

/** An application with its manager, and the store that its locks are in. */
async function application(options: Partial<LocksModuleOptions> = {}) {
  const store = new MemoryStore();
  const module = await compile(
    LocksModule.forRoot({ backend: memoryBackend(store), drainMs: 0, ...options }),
  );
  return { module, store, locks: module.get<LockManager>(LOCKS) };
}

describe('LocksModule', () => {
  it('gives one manager to all modules with isGlobal', async () => {
    const module = await compile(LocksModule.forRoot(onMemory({ isGlobal: true })), StockModule);
    expect(module.get(Stock, { strict: false }).locks).toBe(module.get(LOCKS));
    await module.close();
  });

  it('without isGlobal is seen by modules that import it, and by no other', async () => {
    const locks = LocksModule.forRoot(onMemory());
    await expect(compile(locks, StockModule)).rejects.toThrow('LOCKS');
    @Module({ imports: [locks], providers: [Stock] })
    class Importing {}
    const module = await compile(Importing);
    expect(module.get(Stock, { strict: false }).locks).toBe(module.get(LOCKS, { strict: false }));
    await module.close();
  });

  it('passes the defaults on to the locks', async () => {
    const { module, locks } = await application({ defaults: { ttlMs: 5_000 } });
    const lease = await locks.lock('a').acquire();
    expect(lease.validForMs).toBeLessThanOrEqual(5_000);
    await module.close();
  });

  it('makes a backend for each application where it is given a function', async () => {
    const root = LocksModule.forRoot({ backend: () => memoryBackend() });
    const [one, other] = await Promise.all([compile(root), compile(root)]);
    await one.close();
    const locks = other.get<LockManager>(LOCKS);
    expect(await locks.lock('a').run(() => 'still open')).toBe('still open');
    await other.close();
  });

  describe('forRootAsync', () => {
    @Injectable()
    class Configuration {
      readonly ttlMs = 7_000;
      createLocksOptions(): LocksModuleOptions {
        return { backend: memoryBackend(), defaults: { ttlMs: this.ttlMs }, drainMs: 0 };
      }
    }
    @Module({ providers: [Configuration], exports: [Configuration] })
    class ConfigurationModule {}
    const imports = [ConfigurationModule];

    it.each([
      [
        'useFactory',
        { imports, inject: [Configuration], useFactory: (one: Configuration) => one.createLocksOptions() },
      ],
      ['an asynchronous useFactory', { useFactory: async () => new Configuration().createLocksOptions() }],
      ['useClass', { useClass: Configuration }],
      ['useExisting', { imports, useExisting: Configuration }],
    ])('takes the options of %s', async (_, options) => {
      const module = await compile(LocksModule.forRootAsync({ ...options, isGlobal: true }), StockModule);
      const { locks } = module.get(Stock, { strict: false });
      const lease = await locks.lock('a').acquire();
      expect(lease.validForMs).toBeGreaterThan(5_000);
      expect(lease.validForMs).toBeLessThanOrEqual(7_000);
      await module.close();
    });
  });

  describe('at shutdown', () => {
    it('lets work that holds a lock end, and refuses others', async () => {
      const { module, locks } = await application({ drainMs: 60_000 });
      const lease = await locks.lock('a').acquire();
      const waiting = locks.lock('a').acquire({ waitMs: Number.POSITIVE_INFINITY });
      const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
      const closed = module.close();
      await refused;
      await expect(locks.lock('b').acquire()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
      lease.assertValid();
      expect(lease.signal.aborted).toBe(false);
      await lease.release();
      await closed;
    });

    it('ends what is still held after drainMs, and frees it for others', async () => {
      const { module, store, locks } = await application({ drainMs: 20 });
      const lease = await locks.lock('a').acquire();
      await module.close();
      expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'closed' });
      await using others = createLocks(memoryBackend(store));
      expect(await others.lock('a').tryAcquire()).toBeDefined();
    });

    it('calls afterClose when nothing is held any more, also where the backend could not be closed', async () => {
      const store = new MemoryStore();
      const broken: LockBackend = Object.assign(memoryBackend(store), {
        close: () => Promise.reject(new Error('does not close')),
      });
      const seen: unknown[] = [];
      const afterClose = (): void => void seen.push(store.holders('a').length);
      const { module, locks } = await application({ backend: broken, drainMs: 60_000, afterClose });
      const lease = await locks.lock('a').acquire();
      const closed = module.close();
      expect(seen).toEqual([]);
      await lease.release();
      await closed;
      expect(seen).toEqual([0]);
    });
  });

  it('is used by tests of a whole application with LOCKS_OPTIONS overridden: its factory does not run', async () => {
    const root = LocksModule.forRootAsync({
      useFactory: () => {
        throw new Error('a client of the real store');
      },
    });
    const module = await Test.createTestingModule({ imports: [root] })
      .overrideProvider(LOCKS_OPTIONS)
      .useValue({ backend: memoryBackend() })
      .compile();
    expect(
      await module
        .get<LockManager>(LOCKS)
        .lock('a')
        .run(() => 'locked'),
    ).toBe('locked');
    expect(module.get(ONCE_RECORD)).toBe(null);
    await module.close();
  });

  describe('refuses with LOCK_INVALID_ARGUMENT', () => {
    const backend = memoryBackend();
    it.each([
      ['no options', undefined],
      ['no backend', {}],
      ['a backend that is none', { backend: 'redis' }],
      ['an unknown option', { backend, isglobal: true }],
      ['an isGlobal that is no boolean', { backend, isGlobal: 'yes' }],
      ['a negative drainMs', { backend, drainMs: -1 }],
      ['an afterClose that is no function', { backend, afterClose: true }],
      ['a slot store that is none', { backend, slots: {} }],
    ])('at forRoot %s', (_, options) => {
      expect(() => LocksModule.forRoot(options as never)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    });

    it.each([
      ['no options', undefined],
      ['no way', { isGlobal: true }],
      ['two ways', { useFactory: () => ({ backend }), useExisting: 'x' }],
      ['an unknown option', { useFactory: () => ({ backend }), injects: [] }],
      ['a factory that is no function', { useFactory: { backend } }],
    ])('at forRootAsync %s', (_, options) => {
      expect(() => LocksModule.forRootAsync(options as never)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    });

    it.each([
      ['a client instead of a backend', { backend: { get() {} } }],
      ['bad defaults', { backend, defaults: { ttl: 5 } }],
      ['an unknown option of a factory', { backend, drain: 5 }],
    ])('when the application starts %s', async (_, options) => {
      const starting = compile(LocksModule.forRootAsync({ useFactory: () => options as never }));
      await expect(starting).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    });
  });
});

it('the tokens are those of any other copy of this package', () => {
  expect(LOCKS).toBe(Symbol.for('@locks/nestjs/LOCKS'));
  expect(Inject(LOCKS)).toBeTypeOf('function');
});
