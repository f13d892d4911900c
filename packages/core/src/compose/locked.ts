import type { LockManager } from '../create-locks.ts';
import { invalidArgument, mustBe, quote } from '../errors.ts';
import type { BaseLease } from '../lease.ts';
import type { Lock } from '../lock.ts';
import { type AcquireOptions, checkKeys, LOCK_KEYS, type LockOptions } from '../options.ts';

export interface LockedOptions
  extends Omit<AcquireOptions, 'within' | 'steal'>,
    Pick<LockOptions, 'reentrant'> {
  /**
   * `wait` for up to `waitMs`; `refuse` at once, with `LOCK_TIMEOUT`, when somebody else is inside.
   * @defaultValue 'wait'
   */
  readonly whenContended?: 'wait' | 'refuse' | undefined;
  /**
   * `shared`: calls run beside each other, but not beside exclusive ones of the same key.
   * @defaultValue 'exclusive'
   */
  readonly mode?: 'exclusive' | 'shared' | undefined;
}

/** A constant name, or the name made from the arguments of a call. */
export type LockKey<This, A extends unknown[]> = string | ((this: This, ...args: A) => string);

type Manager = Pick<LockManager<BaseLease>, 'lock' | 'readWriteLock'>;

/**
 * Wraps a function so that calls with the same key exclude each other, over all processes.
 *
 * @param key - a name, or what makes it from the arguments
 * @throws LockError `LOCK_INVALID_ARGUMENT`; the wrapped function rejects as `Lock.run`
 * @example
 * ```ts
 * const sell = locked(locks, (whId: string, sku: string) => `stock:${whId}:${sku}`, async (whId, sku) => {
 *   await deduct(whId, sku);
 * });
 * await sell('berlin', 'sku-1');
 * ```
 */
export function locked<This, A extends unknown[], R>(
  locks: Manager,
  key: LockKey<This, A>,
  fn: (this: This, ...args: A) => R | Promise<R>,
  options?: LockedOptions,
): (this: This, ...args: A) => Promise<R> {
  if (typeof fn !== 'function') throw mustBe('What locked() wraps', 'a function', fn);
  checkKey(key);
  const prepared = prepare(options);
  checkManager(locks);
  return async function (this: This, ...args: A): Promise<R> {
    const name = typeof key === 'string' ? key : key.apply(this, args);
    return lockOf(locks, name, prepared).run(() => fn.apply(this, args), prepared.acquire);
  };
}

/**
 * A method whose calls with the same key exclude each other, over all processes: a decorator of the TC39 standard.
 *
 * @param locks - the manager, or how an instance finds its own
 * @param key - default `Class.method`, of the class that declares it. Give one where a bundler shortens class names, for
 * private methods, and under other decorators.
 * @throws LockError `LOCK_INVALID_ARGUMENT`; the decorated method rejects as `Lock.run`
 * @example
 * ```ts
 * class Stock {
 *   @Locked(locks, (sku: string) => `stock:${sku}`)
 *   async deduct(sku: string, count: number) {}
 * }
 * ```
 */
export function Locked<This extends object, A extends unknown[]>(
  locks: Manager | ((self: This) => Manager),
  key?: LockKey<This, A>,
  options?: LockedOptions,
): <R>(
  method: (this: This, ...args: A) => Promise<R>,
  context: ClassMethodDecoratorContext<This, (this: This, ...args: A) => Promise<R>>,
) => (this: This, ...args: A) => Promise<R> {
  if (key !== undefined) checkKey(key);
  const prepared = prepare(options);
  if (typeof locks !== 'function') checkManager(locks);
  return (method, context) => {
    if (typeof method !== 'function' || context?.kind !== 'method') {
      throw mustBe('What @Locked() decorates', 'a method', context?.kind ?? method);
    }
    return async function replacement(this: This, ...args: A) {
      const manager = typeof locks === 'function' ? locks(this) : locks;
      checkManager(manager);
      const name =
        key === undefined
          ? `${declarerOf(this, context.name, replacement)}.${String(context.name)}`
          : typeof key === 'string'
            ? key
            : key.apply(this, args);
      return lockOf(manager, name, prepared).run(() => method.apply(this, args), prepared.acquire);
    };
  };
}

interface Prepared {
  readonly shared: boolean;
  readonly lock: LockOptions | undefined;
  readonly acquire: AcquireOptions;
}

function prepare(options: LockedOptions = {}): Prepared {
  checkKeys(options, [...LOCK_KEYS, 'signal', 'whenContended', 'mode']);
  const { whenContended = 'wait', mode = 'exclusive', reentrant, ...acquire } = options;
  if (whenContended !== 'wait' && whenContended !== 'refuse') {
    throw mustBe('whenContended', 'wait or refuse', whenContended);
  }
  if (mode !== 'exclusive' && mode !== 'shared') throw mustBe('mode', 'exclusive or shared', mode);
  return {
    shared: mode === 'shared',
    lock: reentrant === undefined ? undefined : { reentrant },
    acquire: whenContended === 'refuse' ? { ...acquire, waitMs: 0 } : acquire,
  };
}

function lockOf(locks: Manager, name: string, { shared, lock }: Prepared): Lock<BaseLease> {
  return shared ? locks.readWriteLock(name, lock).read : locks.lock(name, lock);
}

/** The class that declares the method: a subclass shares the key of what it inherits. */
function declarerOf(self: object, name: string | symbol, method: unknown): string {
  for (
    let owner: object | null = self;
    owner !== null;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    if (Object.getOwnPropertyDescriptor(owner, name)?.value !== method) continue;
    // A static method lies on the class itself.
    const declarer = typeof owner === 'function' ? owner : (owner as { constructor?: unknown }).constructor;
    if (typeof declarer === 'function' && declarer.name !== '') return declarer.name;
  }
  throw invalidArgument(
    `@Locked() cannot tell the class of the method ${quote(String(name))}: the method is private or wrapped by another ` +
      'decorator, or the class has no name. Give it a key.',
  );
}

function checkKey(key: unknown): void {
  if (typeof key !== 'string' && typeof key !== 'function')
    throw mustBe('The key', 'a string or a function', key);
}

function checkManager(locks: Manager): void {
  if (typeof (locks as Partial<Manager> | null | undefined)?.lock === 'function') return;
  throw mustBe('The lock manager', 'what createLocks() gave', locks);
}
