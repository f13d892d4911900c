import type { LockBackend } from '../../src/backend/index.ts';
import { createLocks, Locked, locked, type LockManager } from '../../src/index.ts';

// Compiled by `tsc` as decorators of the standard and, by tsconfig.legacy-decorators.json, as `experimentalDecorators`.

declare const backend: LockBackend;
const locks = createLocks(backend);

class Service {
  readonly locks: LockManager;
  constructor(locks: LockManager) {
    this.locks = locks;
  }
}

export class Stock extends Service {
  @Locked(locks, (sku: string) => `stock:${sku}`)
  async first(sku: string, count: number): Promise<number> {
    return sku.length + count;
  }
  @Locked(locks)
  async classAndMethod(): Promise<void> {}
  @Locked(locks, 'constant')
  async constant(sku: string, count?: number): Promise<string> {
    return `${sku}${count}`;
  }
  @Locked(
    (self: Stock) => self.locks,
    (sku: string, count?: number) => `${sku}${count}`,
  )
  async optional(sku: string, count?: number, at?: Date): Promise<string> {
    return `${sku}${count}${at}`;
  }
  @Locked(
    (self: Stock) => self.locks,
    function (this: Stock, sku: string) {
      return `${this.locks.capabilities.reach}${sku}`;
    },
  )
  async ofInstance(sku: string, at: Date): Promise<string> {
    return `${sku}${at}`;
  }
  @Locked(locks, (sku: string) => sku)
  async generic<T>(_sku: string, value: T): Promise<T> {
    return value;
  }
  @Locked(locks, (sku: string | number) => `${sku}`)
  async wider(sku: string): Promise<string> {
    return sku;
  }
  @Locked(locks)
  static async ofClass(sku: string): Promise<string> {
    return sku;
  }

  // @ts-expect-error -- the name takes a number
  @Locked(locks, (sku: number) => `${sku}`)
  async another(sku: string): Promise<string> {
    return sku;
  }
  // @ts-expect-error -- the name takes more than the method has
  @Locked(locks, (sku: string, count: number) => `${sku}${count}`)
  async tooFew(sku: string): Promise<string> {
    return sku;
  }
  // @ts-expect-error -- the argument that the name needs may be missing
  @Locked(locks, (sku: string) => sku)
  async mayBeMissing(sku?: string): Promise<string> {
    return `${sku}`;
  }
  // @ts-expect-error -- a lock is waited for: the method gives a promise
  @Locked(locks)
  atOnce(sku: string): string {
    return sku;
  }
  // @ts-expect-error -- the manager is that of another class
  @Locked((self: Date & { locks: LockManager }) => self.locks)
  async ofAnother(sku: string): Promise<string> {
    return sku;
  }
}

const stock = new Stock(locks);
export const first: Promise<number> = stock.first('a', 1);
export const generic: Promise<Date> = stock.generic('a', new Date());
// @ts-expect-error -- a decorated method keeps its parameters
void stock.first('a');

const sell = locked(
  locks,
  (sku: string) => sku,
  async (_sku: string, count: number) => count,
);
export const sold: Promise<number> = sell('a', 1);
// @ts-expect-error -- a wrapped function keeps its parameters
void sell('a');
const typedByKey = locked(
  locks,
  (a: string, b: string) => a + b,
  async (a, b) => a.length + b.length,
);
export const length: Promise<number> = typedByKey('a', 'b');
const nameWithout = locked(
  locks,
  () => 'x',
  async (count: number) => count,
);
export const counted: Promise<number> = nameWithout(1);
locked(
  locks,
  (sku: number) => `${sku}`,
  // @ts-expect-error -- the name takes a number
  async (sku: string) => sku,
);
