import type { ManagerOptions } from '@locks/core';
import { matching, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { type MemoryTestBackend, memoryTestBackend } from '@locks/memory';
import { type SlotStore, type SlotEntry } from '@locks/once';
import { type DynamicModule, Module } from '@nestjs/common';
import { LocksModule } from '../locks-module.ts';
import { readSlotStore } from '../module-options.ts';

/** The injection token of the store of {@link LocksTestingModule}: a `MemoryTestBackend`, which loses and refuses locks on demand. */
export const LOCKS_MEMORY: symbol = Symbol.for('@locks/nestjs/LOCKS_MEMORY');

/** Options of {@link LocksTestingModule}. */
export interface LocksTestingOptions {
  /**
   * The store of the locks.
   * @defaultValue `memoryTestBackend()`
   */
  readonly memory?: MemoryTestBackend | undefined;
  /** Defaults for all locks: the options of `createLocks()`. */
  readonly defaults?: ManagerOptions | undefined;
  /**
   * The slot store of `@Once`.
   * @defaultValue `memorySlots()`
   */
  readonly slots?: SlotStore | undefined;
}

const TABLE = {
  memory: optional(
    matching('what memoryTestBackend() gave', (value): value is MemoryTestBackend => {
      return typeof (value as Partial<MemoryTestBackend> | null)?.lose === 'function';
    }),
  ),
  // createLocks() checks the content of `defaults`.
  defaults: (value) => value as ManagerOptions | undefined,
  slots: optional(readSlotStore),
} satisfies OptionTable<LocksTestingOptions>;

// setup: import { LocksTestingModule, memoryTestBackend } from '@locks/nestjs/testing'; import { Test } from '@nestjs/testing'; import { Injectable } from '@nestjs/common';
// setup: @Injectable() class Stock { async deduct(sku: string, count: number) {} }
/**
 * Stands for `LocksModule` in tests of single providers: locks in memory that are lost, refused or out of reach on demand, visible in every module. A
 * whole application is tested as it is, with the provider `LOCKS_OPTIONS` overridden.
 *
 * @example
 * ```ts
 * const memory = memoryTestBackend();
 * const testing = await Test.createTestingModule({
 *   imports: [LocksTestingModule.forRoot({ memory })],
 *   providers: [Stock],
 * }).compile();
 * const selling = testing.get(Stock).deduct('sku-1', 2);
 * memory.lose('stock:sku-1'); // `selling` rejects with LOCK_LOST
 * ```
 */
export class LocksTestingModule {
  /**
   * The module, with a store and a slot store of its own unless it is given them.
   * @throws LockError `LOCK_INVALID_ARGUMENT`
   */
  static forRoot(options?: LocksTestingOptions): DynamicModule {
    const read = readOptions('LocksTestingModule.forRoot()', options, TABLE);
    const { memory = memoryTestBackend(), slots = memorySlots(), defaults } = read;
    return {
      module: LocksTestingModule,
      global: true,
      imports: [LocksModule.forRoot({ backend: memory, slots, defaults, drainMs: 0, isGlobal: true })],
      providers: [{ provide: LOCKS_MEMORY, useValue: memory }],
      exports: [LOCKS_MEMORY],
    };
  }
}

// A decorator as a function: syntax that has to be compiled away is not in these sources.
Module({})(LocksTestingModule);

/**
 * A slot store of `@Once` in memory, for tests: it is empty at first, and ends with the process.
 *
 * @param clock - the time of the slot store, in milliseconds since 1970: a slot in its future is refused. Give it the `clock` of the methods, where
 * they have one. Default: `Date.now`
 */
export function memorySlots(clock: () => number = Date.now): SlotStore {
  const entries = new Map<string, SlotEntry>();
  return {
    async read(name) {
      return { entry: entries.get(name), storeTime: clock() };
    },
    async write(name, entry) {
      const { token = 0n } = entries.get(name) ?? {};
      if (token > entry.token) return false;
      entries.set(name, entry);
      return true;
    },
  };
}
