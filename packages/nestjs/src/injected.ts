import type { FencedLockManager, LockManager } from '@locks/core';
import { invalidArgument, mustBe } from '@locks/core/backend';
import type { SlotStore } from '@locks/once';
import { Inject } from '@nestjs/common';
import { LOCKS, ONCE_RECORD } from './tokens.ts';

/** Nest sets these properties on the instances of classes that have a decorated method. */
const LOCKS_PROPERTY = Symbol.for('@locks/nestjs/locks of this instance');
const SLOTS_PROPERTY = Symbol.for('@locks/nestjs/slots of this instance');

interface Injected {
  readonly [LOCKS_PROPERTY]?: LockManager;
  readonly [SLOTS_PROPERTY]?: SlotStore;
}

/** The arguments of a decorator of TypeScript's `experimentalDecorators`, checked. */
export interface DecoratedMethod {
  readonly target: object;
  readonly name: string | symbol;
  readonly descriptor: PropertyDescriptor;
}

/**
 * Reads the arguments of a method's decorator.
 *
 * @param caller - the decorator, for messages: `@Once()`
 * @throws LockError `LOCK_INVALID_ARGUMENT` for anything but a method of instances, and for decorators of the TC39 standard, which
 * Nest does not know
 */
export function methodOf(
  caller: string,
  target: unknown,
  name: unknown,
  descriptor: unknown,
): DecoratedMethod {
  if (typeof name === 'object' && name !== null) {
    throw invalidArgument(`${caller} needs the option experimentalDecorators of TypeScript, as Nest does.`);
  }
  const found = (descriptor ?? {}) as PropertyDescriptor;
  // The target of a static method is the class itself, of which Nest makes no instance to inject into.
  if (typeof target !== 'object' || target === null || typeof found.value !== 'function') {
    throw mustBe(`${caller}: what it decorates`, 'a method of instances', found.value ?? target);
  }
  return { target, name: name as string | symbol, descriptor: found };
}

/** Lets Nest inject the lock manager into the instances of a class. */
export function injectLocks({ target }: DecoratedMethod): void {
  Inject(LOCKS)(target, LOCKS_PROPERTY);
}

/** Lets Nest inject the slot store of the module into the instances of a class. */
export function injectSlots({ target }: DecoratedMethod): void {
  Inject(ONCE_RECORD)(target, SLOTS_PROPERTY);
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` where Nest has not made the instance */
export function locksOf(caller: string, instance: object): FencedLockManager {
  const locks = (instance as Injected | undefined)?.[LOCKS_PROPERTY];
  if (locks === undefined) {
    throw invalidArgument(
      `${caller} found no lock manager: Nest has not made this instance of ` +
        `${instance?.constructor?.name ?? 'no class'} as a provider or controller.`,
    );
  }
  // once() refuses a manager without tokens; the locks of @Locked() need none.
  return locks as LockManager as FencedLockManager;
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` where neither the module nor the decorator has a slot store */
export function slotsOf(caller: string, instance: object): SlotStore {
  const slots = (instance as Injected)[SLOTS_PROPERTY];
  if (slots !== undefined) return slots;
  throw invalidArgument(`${caller} has no slot store: give one to LocksModule, or to ${caller}.`);
}
