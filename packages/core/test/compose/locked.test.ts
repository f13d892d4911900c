import { expect, test, vi } from 'vitest';
import { Locked, locked } from '../../src/index.ts';
import type { AcquireRequest } from '../../src/backend/types.ts';
import { codeOf, locksOn } from '../fixture.ts';
import { capabilities, contended, granted, scriptedBackend } from '../scripted-backend.ts';

/** The names and modes that were asked for, in order. */
function watched(script: Parameters<typeof scriptedBackend>[0] = {}) {
  const asked: AcquireRequest[] = [];
  const backend = scriptedBackend({
    capabilities: { ...capabilities, modes: ['exclusive', 'shared'] },
    downgrade: () => Promise.resolve({ status: 'held' }),
    ...script,
    attempt(request, enqueue, call) {
      asked.push(request);
      return script.attempt?.(request, enqueue, call) ?? Promise.resolve(granted(request, call));
    },
  });
  return { backend, asked, locks: locksOn(backend), names: () => asked.map(({ resource }) => resource) };
}

test('a wrapped function runs under the lock of its name, with its arguments, this and value', async () => {
  const { backend, locks, names } = watched();
  const fn = vi.fn(async function (this: { base: number }, warehouse: string, sku: string) {
    expect(backend.of('release')).toHaveLength(0);
    return `${warehouse}${sku}${this.base}`;
  });
  const wrapped = locked(locks, (warehouse: string, sku: string) => `stock:${warehouse}:${sku}`, fn);
  expect(await wrapped.call({ base: 1 }, 'b', 's')).toBe('bs1');
  expect(names()).toEqual(['stock:b:s']);
  expect(backend.of('release')).toHaveLength(1);
});

test('an error of the function, and of the name, reaches the caller', async () => {
  const { backend, locks } = watched();
  const failing = locked(locks, 'a', () => Promise.reject(new Error('no stock')));
  await expect(failing()).rejects.toThrow('no stock');
  expect(backend.of('release')).toHaveLength(1);
  const nameless = locked(
    locks,
    (): string => JSON.parse('{'),
    async () => 1,
  );
  await expect(nameless()).rejects.toThrow(SyntaxError);
  expect(backend.of('attempt')).toHaveLength(1);
});

test('a name that is none is refused before anything is sent', async () => {
  const { backend, locks } = watched();
  const wrapped = locked(
    locks,
    () => '',
    async () => 1,
  );
  await expect(wrapped()).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(backend.sent).toEqual([]);
});

test('where it refuses, one attempt is made and nothing queues', async () => {
  const enqueues: boolean[] = [];
  const { locks } = watched({
    attempt(_, enqueue) {
      enqueues.push(enqueue);
      return Promise.resolve(contended);
    },
  });
  const fn = vi.fn(async () => 1);
  const wrapped = locked(locks, 'a', fn, { whenContended: 'refuse', waitMs: 5_000 });
  await expect(wrapped()).rejects.toMatchObject({ code: 'LOCK_CONTENDED' });
  expect(enqueues).toEqual([false]);
  expect(fn).not.toHaveBeenCalled();
});

test('shared calls take shares', async () => {
  const { locks, asked } = watched();
  await locked(locks, 'a', async () => 1, { mode: 'shared', ttlMs: 1_234 })();
  expect(asked[0]).toMatchObject({ mode: { kind: 'shared' }, ttlMs: 1_234 });
});

test('with reentrant, a wrapped function may call another of the same name', async () => {
  const { backend, locks } = watched();
  const inner = locked(locks, 'a', async () => 'inner', { reentrant: true });
  const outer = locked(locks, 'a', async () => `outer ${await inner()}`, { reentrant: true });
  expect(await outer()).toBe('outer inner');
  expect(backend.of('attempt')).toHaveLength(1);
});

/** Decorates as a compiler does. */
function decorate<T extends object>(
  type: { prototype: T },
  name: keyof T & string,
  decorator: (method: never, context: never) => unknown,
  owner: object = type.prototype,
): void {
  const method = (owner as Record<string, unknown>)[name];
  const value = decorator(method as never, { kind: 'method', name } as never);
  Object.defineProperty(owner, name, { value, configurable: true, writable: true });
}

/** Decorates as a compiler does with `experimentalDecorators`. */
function decorateLegacy(
  type: object,
  name: string,
  ...decorators: readonly ((target: never, name: never, descriptor: never) => unknown)[]
): void {
  let descriptor = Object.getOwnPropertyDescriptor(type, name);
  for (const decorator of decorators.toReversed()) {
    descriptor =
      (decorator(type as never, name as never, descriptor as never) as typeof descriptor) ?? descriptor;
  }
  Object.defineProperty(type, name, descriptor as PropertyDescriptor);
}

class Stock {
  left = 3;
  locks: ReturnType<typeof watched>['locks'] | undefined;
  async deduct(sku: string, count = 1): Promise<string> {
    this.left -= count;
    return `${sku}:${this.left}`;
  }
}
class Warehouse extends Stock {}

test('a decorated method runs under the lock of its name, on its own instance', async () => {
  const { locks, names } = watched();
  class Shop extends Stock {
    override deduct(sku: string, count?: number): Promise<string> {
      return super.deduct(sku, count);
    }
  }
  decorate(Shop, 'deduct', Locked(locks, (sku: string) => `stock:${sku}`) as never);
  expect(await new Shop().deduct('s', 2)).toBe('s:1');
  expect(names()).toEqual(['stock:s']);
});

test('the default name is that of the class which declares the method, also for a subclass and a static method', async () => {
  const { locks, names } = watched();
  class Base extends Stock {
    override deduct(sku: string): Promise<string> {
      return super.deduct(sku);
    }
    static async count(): Promise<number> {
      return 1;
    }
  }
  class Derived extends Base {}
  decorate(Base, 'deduct', Locked(locks) as never);
  decorate(Base, 'count' as never, Locked(locks) as never, Base);
  await new Base().deduct('s');
  await new Derived().deduct('s');
  await Base.count();
  await Derived.count();
  expect(names()).toEqual(['Base.deduct', 'Base.deduct', 'Base.count', 'Base.count']);
});

test('as a legacy decorator it works the same: instances, arguments, names, static methods', async () => {
  const { backend, locks, names } = watched();
  class Base extends Stock {
    override deduct(sku: string, count?: number): Promise<string> {
      return super.deduct(sku, count);
    }
    async named(): Promise<number> {
      return this.left;
    }
    static async count(): Promise<number> {
      return 1;
    }
  }
  class Derived extends Base {}
  decorateLegacy(
    Base.prototype,
    'deduct',
    Locked(locks, (sku: string) => `stock:${sku}`),
  );
  decorateLegacy(Base.prototype, 'named', Locked(locks));
  decorateLegacy(Base, 'count', Locked(locks));
  expect(await new Base().deduct('s', 2)).toBe('s:1');
  expect(await new Derived().named()).toBe(3);
  expect(await Derived.count()).toBe(1);
  expect(names()).toEqual(['stock:s', 'Base.named', 'Base.count']);
  expect(backend.of('release')).toHaveLength(3);
});

test('a legacy decorator finds the class also under other decorators that replace the method', async () => {
  const { locks, names } = watched();
  class Shop extends Stock {
    async wrapped(): Promise<void> {}
  }
  const other = (_target: object, _name: string, descriptor: PropertyDescriptor): PropertyDescriptor => ({
    ...descriptor,
    value(this: Shop) {
      return (descriptor.value as () => unknown).call(this);
    },
  });
  decorateLegacy(Shop.prototype, 'wrapped', other as never, Locked(locks));
  await new Shop().wrapped();
  expect(names()).toEqual(['Shop.wrapped']);
});

test('what other decorators noted on the method, with reflect-metadata, is on the decorated one', async () => {
  const { locks } = watched();
  const noted = new WeakMap<object, Map<unknown, unknown>>();
  const reflect = {
    getOwnMetadataKeys: (target: object) => [...(noted.get(target)?.keys() ?? [])],
    getOwnMetadata: (key: unknown, target: object) => noted.get(target)?.get(key),
    defineMetadata(key: unknown, value: unknown, target: object): void {
      noted.set(target, (noted.get(target) ?? new Map<unknown, unknown>()).set(key, value));
    },
  };
  const names = Object.keys(reflect);
  Object.assign(Reflect, reflect);
  try {
    class Shop {
      async nightly(): Promise<void> {}
      async standard(): Promise<void> {}
    }
    reflect.defineMetadata('cron', '0 3 * * *', Shop.prototype.nightly);
    reflect.defineMetadata('cron', '0 4 * * *', Shop.prototype.standard);
    decorateLegacy(Shop.prototype, 'nightly', Locked(locks));
    decorate(Shop, 'standard', Locked(locks) as never);
    expect(reflect.getOwnMetadata('cron', Shop.prototype.nightly)).toBe('0 3 * * *');
    expect(reflect.getOwnMetadata('cron', Shop.prototype.standard)).toBe('0 4 * * *');
  } finally {
    for (const name of names) Reflect.deleteProperty(Reflect, name);
  }
});

test('an instance may bring its own manager', async () => {
  const one = watched();
  const two = watched();
  decorate(
    Warehouse,
    'deduct',
    Locked((self: Warehouse) => self.locks as never, 'a') as never,
    Warehouse.prototype,
  );
  for (const { locks } of [one, two]) {
    const warehouse = new Warehouse();
    warehouse.locks = locks;
    await warehouse.deduct('s');
  }
  expect([...one.names(), ...two.names()]).toEqual(['a', 'a']);
});

test('what cannot be wrapped is refused at once', () => {
  const { locks } = watched();
  const fn = async (): Promise<number> => 1;
  const refused: (() => unknown)[] = [
    () => locked(locks, 'a', 1 as never),
    () => locked(locks, 1 as never, fn),
    () => locked({} as never, 'a', fn),
    () => locked(locks, 'a', fn, { whenContended: 'maybe' as never }),
    () => locked(locks, 'a', fn, { mode: 'permit' as never }),
    () => Locked({} as never),
    () => Locked(locks)(fn, { kind: 'field', name: 'x' } as never),
    () => Locked(locks)(fn, undefined as never),
    () => Locked(locks)({}, 'property', undefined as never),
    () => Locked(locks)({}, 'accessor', { get: fn } as never),
  ];
  expect(refused.map(codeOf)).toEqual(refused.map(() => 'LOCK_INVALID_ARGUMENT'));
});

test.each<[string, unknown]>([
  ['null', null],
  ['a number', 5],
  ['a misspelt option', { waitMS: 5 }],
  ['within', { within: undefined }],
  ['steal', { steal: true }],
])('%s is refused as options when the function is wrapped, not when it is called', (_what, options) => {
  const { locks } = watched();
  const wrapping = () => locked(locks, 'a', async () => 1, options as never);
  expect(codeOf(wrapping)).toBe('LOCK_INVALID_ARGUMENT');
  expect(codeOf(() => Locked(locks, 'a', options as never))).toBe('LOCK_INVALID_ARGUMENT');
});

test('a method without a manager, or whose class has no name, is refused with a LockError', async () => {
  const { locks } = watched();
  class Shop extends Stock {
    override deduct(sku: string): Promise<string> {
      return super.deduct(sku);
    }
    async wrapped(): Promise<void> {}
  }
  decorate(Shop, 'deduct', Locked(() => undefined as never, 'a') as never);
  await expect(new Shop().deduct('s')).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  decorate(Shop, 'wrapped', Locked(locks) as never);
  const inner = new Shop().wrapped;
  decorate(
    Shop,
    'wrapped',
    () =>
      function (this: Shop) {
        return inner.call(this);
      },
  );
  await expect(new Shop().wrapped()).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringMatching(/"wrapped".*Give it a name/) as string,
  });
});

test.each<[what: string, ...given: unknown[]]>([
  ['the work before the name', 'work', 'a'],
  ['no work', 'a'],
  ['the options before the work', 'a', { waitMs: 5 }, 'work'],
])('locked refuses %s, and shows the right call', (_, ...given) => {
  const { locks, backend } = watched();
  const args = given.map((one) => (one === 'work' ? async () => 1 : one));
  expect(() => (locked as (...all: unknown[]) => unknown)(locks, ...args)).toThrow(
    expect.objectContaining({
      code: 'LOCK_INVALID_ARGUMENT',
      message: expect.stringMatching(/^locked\(locks, name, work, options\): the work must be a function/),
    }),
  );
  expect(backend.sent).toEqual([]);
});

test('the signal of a wrapped function ends its wait; what works is not told of it, and ends by itself', async () => {
  const stop = new AbortController();
  const { backend, locks } = watched();
  const wrapped = locked(
    locks,
    'a',
    async () => {
      stop.abort(new Error('enough'));
      expect(backend.of('release')).toHaveLength(0);
      return 'done';
    },
    { signal: stop.signal },
  );
  expect(await wrapped()).toBe('done');
  expect(backend.of('release')).toHaveLength(1);
  await expect(wrapped()).rejects.toThrow('enough');
});
