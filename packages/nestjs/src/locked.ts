import { Locked as lockedBy, type LockedDecorator, type LockedOptions, type LockName } from '@locks/core';
import { injectLocks, locksOf, methodOf } from './injected.ts';

// setup: import { Locked } from '@locks/nestjs'; import { Injectable } from '@nestjs/common';
/**
 * A method of a provider or controller whose calls with the same name exclude each other, over all processes: the `Locked` of
 * `@locks/core` with the manager of the application, which Nest injects into the class.
 *
 * @param name - a name, or a function that makes it from the arguments, or from the first of them; default `Class.method`, of the
 * class that declares it
 * @param options - those of `Locked` of `@locks/core`
 * @throws LockError `LOCK_INVALID_ARGUMENT`; the decorated method rejects as `Lock.run`, and with `LOCK_INVALID_ARGUMENT` on an
 * instance that Nest has not made
 * @example
 * ```ts
 * @Injectable()
 * class Stock {
 *   @Locked((sku: string) => `stock:${sku}`, { waitMs: 5_000 })
 *   async deduct(sku: string, count: number) {}
 * }
 * ```
 */
export function Locked<This extends object, A extends unknown[]>(
  name?: LockName<This, A>,
  options?: LockedOptions,
): LockedDecorator<This, A> {
  const decorate: unknown = lockedBy<This, A>((self) => locksOf('@Locked()', self), name, options);
  const decorateAndInject = (target: unknown, member: unknown, descriptor: unknown): unknown => {
    const method = methodOf('@Locked()', target, member, descriptor);
    injectLocks(method);
    return (decorate as MethodDecorator)(method.target, method.name, method.descriptor);
  };
  return decorateAndInject as LockedDecorator<This, A>;
}
