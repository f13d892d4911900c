import { checkManager } from '../backend/check-manager.ts';
import { oneOf, optional, type OptionTable, readOptions } from '../backend/read-options.ts';
import type { LockManager } from '../create-locks.ts';
import { invalidArgument, mustBe, quote } from '../errors.ts';
import type { BaseLease } from '../lease.ts';
import type { Lock } from '../lock.ts';
import { type AcquireOptions, ALL_TABLE, ELSEWHERE, LOCK_TABLE, type LockOptions } from '../options.ts';

/** Options of a function or method that runs under a lock. */
export interface LockedOptions
  extends Omit<AcquireOptions, 'within' | 'steal'>,
    Pick<LockOptions, 'reentrant'> {
  /**
   * Behaviour when the lock is busy: `wait` for up to `waitMs`, or `refuse` at once with `LOCK_CONTENDED`, as with `waitMs: 0`.
   * With `refuse`, `waitMs` has no effect: the store has `answerMs` of the manager for its answer, or the ttl where that is shorter.
   * @defaultValue 'wait'
   */
  readonly whenContended?: 'wait' | 'refuse' | undefined;
  /**
   * Kind of lock: `shared` calls run beside each other, not beside `exclusive` ones of the same name.
   * @defaultValue 'exclusive'
   */
  readonly mode?: 'exclusive' | 'shared' | undefined;
}

/** The name of the lock, or a function that makes it from the arguments, or the first ones. */
export type LockName<This, A extends unknown[]> = string | ((this: This, ...args: A) => string);

/**
 * A decorator of the TC39 standard and of `experimentalDecorators`. The method keeps its type; its first parameters are those of
 * the name.
 */
export interface LockedDecorator<This extends object, A extends unknown[]> {
  <M extends AsyncMethod>(
    method: M & NameTakes<A, Parameters<M>>,
    context: ClassMethodDecoratorContext<This, M>,
  ): M;
  <M extends AsyncMethod>(
    target: NoInfer<This>,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<M & NameTakes<A, Parameters<M>>>,
  ): TypedPropertyDescriptor<M>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- of every parameter list, also of generic and overloaded methods
type AsyncMethod = (...args: any) => Promise<unknown>;

/** `unknown` where a name with the parameters `K` can be called with the arguments `A`; else a type without values. */
type NameTakes<K extends unknown[], A extends unknown[]> = ((...args: K) => void) extends (...args: A) => void
  ? unknown
  : { readonly 'the name has parameters that the function does not have': never };

type Manager = Pick<LockManager<BaseLease>, 'lock' | 'readWriteLock'>;

// setup: import { createLocks, locked } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function deduct(whId: string, sku: string, count: number): Promise<void>;
/**
 * Wraps a function: calls with the same name exclude each other, over all processes.
 *
 * @param name - the name, or a function that makes it from the arguments, or the first ones
 * @throws LockError `LOCK_INVALID_ARGUMENT`; the wrapped function rejects as `Lock.run`
 * @example
 * ```ts
 * const sell = locked(
 *   locks,
 *   (whId: string, sku: string) => `stock:${whId}:${sku}`,
 *   async (whId: string, sku: string, count: number) => deduct(whId, sku, count),
 * );
 * await sell('berlin', 'sku-1', 2);
 * ```
 */
export function locked<This, A extends unknown[], R>(
  locks: Manager,
  name: LockName<This, A>,
  work: (this: This, ...args: A) => R | Promise<R>,
  options?: LockedOptions,
): (this: This, ...args: A) => Promise<R>;
/** Wraps a function with a name that takes only the first parameters. */
export function locked<This, K extends unknown[], A extends unknown[], R>(
  locks: Manager,
  name: LockName<This, K>,
  work: ((this: This, ...args: A) => R | Promise<R>) & NameTakes<K, A>,
  options?: LockedOptions,
): (this: This, ...args: A) => Promise<R>;
export function locked<This, A extends unknown[], R>(
  locks: Manager,
  name: LockName<This, A>,
  work: (this: This, ...args: A) => R | Promise<R>,
  options?: LockedOptions,
): (this: This, ...args: A) => Promise<R> {
  checkManager('The lock manager', locks);
  checkLockName(name);
  if (typeof work !== 'function')
    throw mustBe('locked(locks, name, work, options): the work', 'a function', work);
  const prepared = prepare('locked()', options);
  return guard(locks, name, work, prepared);
}

// setup: import { createLocks, Locked } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
/**
 * Decorates a method: calls with the same name exclude each other, over all processes. Works with decorators of the TC39 standard
 * and `experimentalDecorators`; keeps the metadata of `reflect-metadata`.
 *
 * @param locks - the manager, or a function that gives the manager of an instance
 * @param name - default `Class.method` of the declaring class. Give one for private methods, under other decorators, and where a
 * bundler shortens class names.
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
  name?: LockName<This, A>,
  options?: LockedOptions,
): LockedDecorator<This, A> {
  if (typeof locks !== 'function') checkManager('The lock manager', locks);
  if (name !== undefined) checkLockName(name);
  const prepared = prepare('@Locked()', options);
  const wrap = (method: Method<This, A>, called: string | symbol, target?: object): Method<This, A> => {
    const classAndMethod = function (this: This): string {
      return `${nameOfClass(called, target ?? declarerOf(this, called, replacement))}.${String(called)}`;
    };
    const replacement = guard(locks, name ?? classAndMethod, method, prepared);
    copyMetadata(method, replacement);
    return replacement;
  };
  const decorate = (
    first: object,
    second: ClassMethodDecoratorContext | string | symbol,
    descriptor?: TypedPropertyDescriptor<Method<This, A>>,
  ): unknown => {
    // A legacy decorator gets the prototype, or the class of a static method; the method's name; its descriptor.
    const [method, called, target] =
      typeof second === 'object'
        ? [second?.kind === 'method' && first, second?.name]
        : [descriptor?.value, second, first];
    if (typeof method !== 'function') throw mustBe('@Locked(): what it decorates', 'a method', first);
    const wrapped = wrap(method as Method<This, A>, called, target);
    return target === undefined ? wrapped : { ...descriptor, value: wrapped };
  };
  return decorate as LockedDecorator<This, A>;
}

type Method<This, A extends unknown[]> = (this: This, ...args: A) => Promise<unknown>;

/** Frameworks with `reflect-metadata` keep their metadata of a method on its function. */
function copyMetadata(from: object, to: object): void {
  const reflect = Reflect as Partial<ReflectMetadata> as ReflectMetadata;
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? [])
    reflect.defineMetadata(key, reflect.getOwnMetadata(key, from), to);
}

/** `Reflect` with `reflect-metadata`; without it `Reflect` has none of these methods. */
interface ReflectMetadata {
  getOwnMetadataKeys?(target: object): unknown[];
  getOwnMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

interface Prepared {
  readonly shared: boolean;
  readonly options: LockOptions | undefined;
  readonly acquire: AcquireOptions;
}

const TABLE = {
  ...LOCK_TABLE,
  ...ALL_TABLE,
  whenContended: optional(oneOf('wait', 'refuse'), 'wait'),
  mode: optional(oneOf('exclusive', 'shared'), 'exclusive'),
} satisfies OptionTable<LockedOptions>;

function prepare(caller: string, options: LockedOptions | undefined): Prepared {
  const { whenContended, mode } = readOptions(caller, options, TABLE, ELSEWHERE);
  const { whenContended: _, mode: __, reentrant, ...acquire } = options ?? {};
  return {
    shared: mode === 'shared',
    options: reentrant === undefined ? undefined : { reentrant },
    acquire: whenContended === 'refuse' ? { ...acquire, waitMs: 0 } : acquire,
  };
}

function guard<This, A extends unknown[], R>(
  locks: Manager | ((self: This) => Manager),
  name: LockName<This, A>,
  work: (this: This, ...args: A) => R | Promise<R>,
  { shared, options, acquire }: Prepared,
): (this: This, ...args: A) => Promise<R> {
  return async function (this: This, ...args: A): Promise<R> {
    const manager = typeof locks === 'function' ? locks(this) : locks;
    checkManager('The lock manager', manager);
    const made: unknown = typeof name === 'string' ? name : name.apply(this, args);
    // The type forbids it; a promise would be named as an object, and all calls would have one name.
    if (made instanceof Promise)
      throw invalidArgument(
        'The function for the name returned a promise. It must return the name of the lock itself: it cannot be async.',
      );
    const lock: Lock<BaseLease> = shared
      ? manager.readWriteLock(made as string, options).read
      : manager.lock(made as string, options);
    return lock.run(() => work.apply(this, args), acquire);
  };
}

/** The class, or its prototype, that declares the method: a subclass shares the name of an inherited method. */
function declarerOf(self: object, name: string | symbol, method: unknown): object | undefined {
  let owner: object | null = self;
  while (owner !== null && Object.getOwnPropertyDescriptor(owner, name)?.value !== method)
    owner = Object.getPrototypeOf(owner) as object | null;
  return owner ?? undefined;
}

function nameOfClass(method: string | symbol, owner: object | undefined): string {
  // A static method lies on the class itself.
  const declarer = typeof owner === 'function' ? owner : owner?.constructor;
  if (declarer?.name) return declarer.name;
  throw invalidArgument(
    `@Locked() cannot tell the class of the method ${quote(String(method))}. Give it a name.`,
  );
}

function checkLockName(name: unknown): void {
  if (typeof name !== 'string' && typeof name !== 'function')
    throw mustBe('The name', 'a string or a function', name);
}
