import { Inject } from '@nestjs/common';

/** The injection token of the lock manager: a `LockManager` of `@locks/core`. */
// Registered symbols: two copies of this package in one process provide and inject the same.
export const LOCKS: symbol = Symbol.for('@locks/nestjs/LOCKS');
/** The injection token of the options of `LocksModule`. A test that overrides this provider keeps the application off the real store. */
export const LOCKS_OPTIONS: symbol = Symbol.for('@locks/nestjs/LOCKS_OPTIONS');
/** The injection token of the slot store that `@Once` uses: a `SlotStore` of `@locks/once`, or `null` where the module was given none. */
export const ONCE_RECORD: symbol = Symbol.for('@locks/nestjs/ONCE_RECORD');

// setup: import type { FencedLockManager } from '@locks/core'; import { InjectLocks } from '@locks/nestjs'; import { Injectable } from '@nestjs/common';
/**
 * Injects the lock manager into a parameter of a constructor, or into a property.
 *
 * @example
 * ```ts
 * @Injectable()
 * class Invoices {
 *   constructor(@InjectLocks() private readonly locks: FencedLockManager) {}
 *
 *   send(id: string) {
 *     return this.locks.lock(`invoice:${id}`).run(({ fencingToken }) => console.log(fencingToken));
 *   }
 * }
 * ```
 */
export function InjectLocks(): PropertyDecorator & ParameterDecorator {
  return Inject(LOCKS);
}
