import { expect, test } from 'vitest';
import { Locks } from '../../src/create-locks.ts';
import { ManagerCore } from '../../src/manager-core.ts';
import type { Lease } from '../../src/lease.ts';
import { LeaseHandle } from '../../src/lease/lease-handle.ts';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import { ResourceLock } from '../../src/lock.ts';
import { builtInDefaults } from '../../src/options.ts';
import { enterScope } from '../../src/acquire/re-enter.ts';
import { locksOn, pass, rejectionOf, settled, stall, useFakeClock } from '../fixture.ts';
import { answerLater, capabilities, scriptedBackend } from '../scripted-backend.ts';

/** Work that writes down who is inside, and leaves some turns later. */
function overlap(): { work: () => Promise<void>; most: () => number } {
  let inside = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    inside += 1;
    most = Math.max(most, inside);
    await settled();
    inside -= 1;
  };
  return { work, most: () => most };
}

test('children of one scope exclude each other, and enter in the order in which they came', async () => {
  const lock = locksOn(scriptedBackend()).lock('a', { reentrant: true });
  const { work, most } = overlap();
  const order: number[] = [];
  await lock.run(() =>
    Promise.all(
      [1, 2, 3, 4].map((number) =>
        lock.run(async () => {
          order.push(number);
          await work();
        }),
      ),
    ),
  );
  expect(most()).toBe(1);
  expect(order).toEqual([1, 2, 3, 4]);
});

test('children do not exclude the parent’s own code', async () => {
  const lock = locksOn(scriptedBackend()).lock('a', { reentrant: true });
  const { answer, give } = answerLater<void>();
  await lock.run(async (lease) => {
    const child = lock.run(() => answer);
    await settled();
    expect(lease.holdCount).toBe(2);
    lease.assertValid();
    give();
    await child;
  });
});

test('grandchildren keep their parent’s turn until they have left', async () => {
  const lock = locksOn(scriptedBackend()).lock('a', { reentrant: true });
  const { work, most } = overlap();
  const nested = (): Promise<void> => lock.run(() => lock.run(work));
  await lock.run(() => Promise.all([nested(), nested(), lock.run(work)]));
  expect(most()).toBe(1);
});

test('handles within one lease take turns too, and a single attempt does not wait for its turn', async () => {
  const lock = locksOn(scriptedBackend()).lock('a');
  const root = await lock.acquire();
  const first = await lock.acquire({ within: root });
  expect(await lock.tryAcquire({ within: root })).toBeUndefined();
  const second = lock.acquire({ within: root });
  await settled();
  expect(root.holdCount).toBe(2);
  await first.release();
  await (await second).release();
  const third = await lock.tryAcquire({ within: root });
  expect(third?.holdCount).toBe(2);
});

test('a branch that enters its own parent’s scope again would wait for itself, and is refused', async () => {
  const lock = locksOn(scriptedBackend()).lock('a', { reentrant: true });
  await lock.run(async (root) => {
    await lock.run(async () => {
      expect(await rejectionOf(lock.acquire({ within: root }))).toBe('LOCK_REENTRANT');
      expect(await rejectionOf(lock.run(() => {}, { within: root }))).toBe('LOCK_REENTRANT');
    });
    await (await lock.acquire({ within: root })).release();
  });
});

test('two branches that wait for each other’s turns are rejected, instead of waiting for ever', async () => {
  const locks = locksOn(scriptedBackend(), { reentrant: true });
  const [a, b] = [locks.lock('a'), locks.lock('b')];
  const outcomes = await a.run(() =>
    b.run(() =>
      Promise.all([
        a.run(async () => {
          await settled();
          return rejectionOf(b.run(() => 'done'));
        }),
        b.run(async () => {
          await settled();
          return rejectionOf(a.run(() => 'done'));
        }),
      ]),
    ),
  );
  expect(outcomes.toSorted()).toEqual(['LOCK_REENTRANT', 'fulfilled']);
});

test('a shared hold is not upgraded: neither by within nor by run inside run', async () => {
  const backend = scriptedBackend({ capabilities: { ...capabilities, modes: ['exclusive', 'shared'] } });
  const core = new ManagerCore(backend, 5_000, new CombinedClock());
  const options = { ...builtInDefaults(capabilities.ttl), reentrant: true };
  const shared = new ResourceLock(core, 'a', { kind: 'shared' }, options);
  const exclusive = new ResourceLock(core, 'a', { kind: 'exclusive' }, options);
  await shared.run(async (lease) => {
    expect(await rejectionOf(exclusive.acquire({ within: lease }))).toBe('LOCK_REENTRANT');
    expect(await rejectionOf(exclusive.tryAcquire({ within: lease }))).toBe('LOCK_REENTRANT');
    expect(await rejectionOf(exclusive.run(() => 'ran'))).toBe('LOCK_REENTRANT');
    expect(await shared.run((inner) => inner.holdCount)).toBe(2);
  });
  // The other way round the holder has more than it asks for.
  await exclusive.run(async (lease) => {
    const read = await enterScope(
      core,
      'a',
      { kind: 'shared' },
      { ...options, within: lease },
      true,
      undefined,
    );
    expect(read?.mode.kind).toBe('exclusive');
    await read?.release();
  });
  expect(backend.of('attempt')).toHaveLength(2);
  await core.close(0);
});

test('a handle knows its own kind only', async () => {
  const lease = await new Locks(scriptedBackend()).lock('a').acquire();
  expect(LeaseHandle.of(lease)).toBe(lease);
  expect(LeaseHandle.of({ ...lease })).toBeUndefined();
  expect(LeaseHandle.of(undefined)).toBeUndefined();
});

test.each<[string, (locks: Locks, lost: Lease) => unknown]>([
  ['a timer that a scope armed', () => pass(30_000)],
  ['who reads in a scope', (_, lost) => (stall(40_000), lost.validForMs)],
  ['who acquires in a scope', (locks) => (stall(40_000), locks.lock('c').tryAcquire())],
])('a loss that %s finds is reported outside of the scope', async (_, comesOut) => {
  useFakeClock();
  const locks = locksOn(scriptedBackend(), { ttlMs: 30_000, reentrant: true });
  const lock = locks.lock('a', { ttlMs: 600_000 });
  const entered: Promise<string>[] = [];
  const own = await lock.run(async ({ acquisitionId }) => {
    const lost = await locks.lock('b', { renewal: 'manual' }).acquire();
    lost.signal.addEventListener('abort', () => entered.push(lock.run((inside) => inside.acquisitionId)));
    await comesOut(locks, lost);
    await settled();
    return acquisitionId;
  });
  // Work of its own under the lock of the scope, which waits its turn like anybody's.
  expect(entered).toHaveLength(1);
  expect(await entered[0]).not.toBe(own);
});
