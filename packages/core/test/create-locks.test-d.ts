import { assertType, expectTypeOf } from 'vitest';
import type { LockBackend } from '../src/backend/index.ts';
import type {
  BackendCapabilities,
  BaseLease,
  FencedLease,
  FencedLockManager,
  Lease,
  LeaseOf,
  Lock,
  LockManager,
  LockManagerOf,
  LockMode,
  LossReason,
} from '../src/index.ts';
import {
  createLocks,
  isLockError,
  Locked,
  locked,
  type LockError,
  type LockErrorCode,
  onLockEvent,
} from '../src/index.ts';

// Compiled by `tsc`, never run: what users may write, and what must not compile for them.

interface Base {
  readonly tenure: 'lease';
  readonly renewal: 'any-client';
  readonly reach: 'network';
  readonly modes: readonly ['exclusive'];
  readonly order: 'fifo';
  readonly ttl: { readonly minMs: 50; readonly stepMs: 1 };
  readonly features: readonly [];
}
type Durable = Base & { readonly fencing: 'durable' };
type Volatile = Base & { readonly fencing: 'volatile' };
type Unfenced = Base & { readonly fencing: 'none' };
type Either = Base & { readonly fencing: 'durable' | 'none' };

declare const durable: LockBackend<Durable>;
declare const unfenced: LockBackend<Unfenced>;
declare const withPermits: LockBackend<
  Omit<Durable, 'modes'> & { readonly modes: readonly ['exclusive', 'permit'] }
>;
declare const unknown: LockBackend;

export async function tokens(): Promise<void> {
  // A backend with tokens: a bigint. Without: no such property. Not known: perhaps.
  const fenced = await createLocks(durable).lock('a').acquire();
  expectTypeOf(fenced.fencingToken).toEqualTypeOf<bigint>();
  const bare = await createLocks(unfenced).lock('a').acquire();
  expectTypeOf(bare).not.toHaveProperty('fencingToken');
  const any = await createLocks(unknown).lock('a').acquire();
  expectTypeOf(any.fencingToken).toEqualTypeOf<bigint | undefined>();
}

expectTypeOf<LeaseOf<Volatile>['fencingToken']>().toEqualTypeOf<bigint>();
expectTypeOf<LeaseOf<Either>['fencingToken']>().toEqualTypeOf<bigint | undefined>();
expectTypeOf<LeaseOf<BackendCapabilities>>().toEqualTypeOf<Lease>();
expectTypeOf<
  'fencingToken' extends keyof LeaseOf<Unfenced> ? 'there' : 'not there'
>().toEqualTypeOf<'not there'>();

export async function leases(): Promise<void> {
  const lock = createLocks(durable).lock('a');
  expectTypeOf(await lock.tryAcquire()).toEqualTypeOf<LeaseOf<Durable> | undefined>();
  expectTypeOf(await lock.run((lease) => lease.fencingToken)).toEqualTypeOf<bigint>();
  expectTypeOf(await lock.run(async () => 'later')).toEqualTypeOf<string>();
  await using lease = await lock.acquire({ waitMs: 5, signal: new AbortController().signal });
  await using child = await lock.acquire({ within: lease });
  expectTypeOf(child.signal).toEqualTypeOf<AbortSignal>();
}

// What is made on a known backend goes where any is asked for.
expectTypeOf<Lock<LeaseOf<Durable>>>().toExtend<Lock>();
expectTypeOf<Lock<LeaseOf<Unfenced>>>().toExtend<Lock>();
expectTypeOf<Lock<LeaseOf<Unfenced>>>().toExtend<Lock<BaseLease>>();
expectTypeOf<LeaseOf<Durable>>().toExtend<Lease>();
expectTypeOf<LeaseOf<Durable>>().toExtend<BaseLease>();
expectTypeOf<LockBackend<Durable>>().toExtend<LockBackend>();
// And not the other way round: who needs a token does not get a lease without.
expectTypeOf<Lease>().not.toExtend<LeaseOf<Durable>>();
expectTypeOf<LeaseOf<Unfenced>>().not.toExtend<LeaseOf<Durable>>();
expectTypeOf<BaseLease>().not.toExtend<LeaseOf<Durable>>();

export function managers(): void {
  const locks = createLocks(durable, { ttlMs: 30_000, waitMs: Number.POSITIVE_INFINITY, renewal: 'manual' });
  expectTypeOf(locks.capabilities).toEqualTypeOf<BackendCapabilities>();
  assertType<LockManager>(locks);
  const takesAny = (manager: LockManager): Promise<void> => manager.close();
  void takesAny(locks);
  void takesAny(createLocks(unfenced));
}

// Options belong where they belong.
type LockOptions = NonNullable<Parameters<LockManager['lock']>[1]>;
type AcquireOptions = NonNullable<Parameters<Lock['acquire']>[0]>;
expectTypeOf<LockOptions>().toHaveProperty('reentrant');
expectTypeOf<LockOptions>().not.toHaveProperty('signal');
expectTypeOf<LockOptions>().not.toHaveProperty('within');
expectTypeOf<AcquireOptions>().toHaveProperty('signal');
expectTypeOf<AcquireOptions>().not.toHaveProperty('reentrant');
expectTypeOf<{ renewal: 'never' }>().not.toExtend<AcquireOptions>();

// What users write down for what they are given.
export function named(service: { store(token: bigint): Promise<void> }): void {
  const sell = (locks: FencedLockManager): Promise<void> =>
    locks.lock('a').run((lease) => service.store(lease.fencingToken));
  const write = (lease: FencedLease): Promise<void> => service.store(lease.fencingToken);
  void sell(createLocks(durable));
  void sell(createLocks(withPermits));
  // @ts-expect-error -- it has no tokens
  void sell(createLocks(unfenced));
  // @ts-expect-error -- it may have none
  void sell(createLocks(unknown));
  void createLocks(durable).readWriteLock('a').write.run(write);
  const many: LockManager<BaseLease> = createLocks(withPermits);
  void many.semaphore('a', 2);
  expectTypeOf(createLocks(durable)).toEqualTypeOf<LockManagerOf<Durable>>();
  const stop = onLockEvent('locks:lost', ({ name: resource, reason, heldMs, label, mode }) => {
    expectTypeOf(resource).toEqualTypeOf<string>();
    expectTypeOf(reason).toEqualTypeOf<LossReason>();
    expectTypeOf(heldMs).toEqualTypeOf<number>();
    expectTypeOf(label).toEqualTypeOf<string | undefined>();
    expectTypeOf(mode).toEqualTypeOf<LockMode>();
  });
  expectTypeOf(stop).toEqualTypeOf<() => void>();
  // @ts-expect-error -- there is no such event
  onLockEvent('locks:lots', () => {});
}

export function errors(error: unknown): void {
  if (isLockError(error, 'LOCK_TIMEOUT')) expectTypeOf(error).toEqualTypeOf<LockError>();
  expectTypeOf<LockError['code']>().toEqualTypeOf<LockErrorCode>();
  expectTypeOf<'LOCK_GONE'>().not.toExtend<LockErrorCode>();
}

// What is wrapped keeps its type.
export async function kinds(): Promise<void> {
  const locks = createLocks(durable);
  const sell = locked(
    locks,
    (warehouse: string, sku: string) => `${warehouse}:${sku}`,
    async (_warehouse, sku) => sku.length,
  );
  expectTypeOf(sell).parameters.toEqualTypeOf<[string, string]>();
  expectTypeOf(await sell('a', 'b')).toEqualTypeOf<number>();
  class Stock {
    @Locked(locks, (sku: string) => sku)
    async deduct(sku: string): Promise<number> {
      return sku.length;
    }
  }
  expectTypeOf(new Stock().deduct).parameters.toEqualTypeOf<[string]>();

  const { read, write } = locks.readWriteLock('a');
  expectTypeOf(await write.acquire()).toHaveProperty('downgrade');
  expectTypeOf(await read.acquire()).not.toHaveProperty('downgrade');
  expectTypeOf((await write.acquire()).fencingToken).toEqualTypeOf<bigint>();
  expectTypeOf(await createLocks(withPermits).semaphore('a', 2).acquire({ weight: 2 })).toEqualTypeOf<
    LeaseOf<Durable>
  >();
  // @ts-expect-error -- the backend has no permits
  locks.semaphore('a', 2);
  createLocks(unknown).semaphore('a', 2);
  const set = await locks.all([locks.lock('a'), read]).acquire();
  expectTypeOf(set.leases[0]?.fencingToken).toEqualTypeOf<bigint | undefined>();
  const mixed = await locks.all<BaseLease>([locks.lock('a'), createLocks(unfenced).lock('b')]).acquire();
  expectTypeOf(mixed.leases[0]).not.toHaveProperty('fencingToken');
}

// oxlint-disable typescript/await-thenable -- the compiler must refuse it, too
/** A lock that is awaited is not acquired: nothing that a manager gives can be awaited by mistake. */
export async function awaited(): Promise<Lock> {
  const locks = createLocks(withPermits);
  // @ts-expect-error -- it takes nothing
  await locks.lock('a');
  // @ts-expect-error -- it takes nothing
  await locks.semaphore('a', 2);
  // @ts-expect-error -- it takes nothing
  await locks.all([locks.lock('a')]);
  // @ts-expect-error -- it takes nothing
  await createLocks(unknown).readWriteLock('a');
  // @ts-expect-error -- it takes nothing
  await createLocks(unknown).readWriteLock('a').read;
  // A plain lock may be the value of a promise.
  const plain: Lock = locks.lock('a');
  return plain;
}

/** A method that is taken from its object would fail: the compiler refuses the call. */
export async function methods(locks: LockManager<FencedLease>) {
  // Functions of a manager need no object.
  const { lock } = locks;
  const { run, acquire, tryAcquire, inspect } = lock('a');
  // @ts-expect-error -- a method of a lock is called on the lock
  await run(() => {});
  // @ts-expect-error -- a method of a lock is called on the lock
  await acquire();
  // @ts-expect-error -- a method of a lock is called on the lock
  await tryAcquire();
  // @ts-expect-error -- a method of a lock is called on the lock
  await inspect();
  const { release, renew, assertValid } = await lock('a').acquire();
  // @ts-expect-error -- a method of a lease is called on the lease
  assertValid();
  // @ts-expect-error -- a method of a lease is called on the lease
  await renew();
  // @ts-expect-error -- a method of a lease is called on the lease
  await release();
}
