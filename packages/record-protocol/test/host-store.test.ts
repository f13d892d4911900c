import { expect, onTestFinished, test, vi } from 'vitest';
import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordWrite } from '../src/index.ts';
import { call, open, request, take } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

/** The clock of a machine, which began an hour ago. */
const uptimeMs = (): number => 3_600_000 + performance.now();
const clock = { stepMs: 0, skewMs: 0 };

/** A store of one host, which notes the writes. */
function hostStore(floor: () => number) {
  const store = new MemoryStore(new Records(), { clock, now: uptimeMs });
  const writes: RecordWrite[] = [];
  store.instead = (write, apply) => {
    writes.push(write);
    return apply();
  };
  return { writes, store: Object.assign(store, { reach: 'host', minTtlMs: 20, tokenFloor: floor } as const) };
}

test('a store of one host declares its reach and its shortest ttl, and any other a network and 50 ms', () => {
  const host = createRecordBackend(hostStore(() => 0).store);
  expect(host.capabilities).toMatchObject({
    reach: 'host' satisfies typeof host.capabilities.reach,
    ttl: { minMs: 20 },
  });
  const other = createRecordBackend(new MemoryStore(new Records()));
  expect(other.capabilities).toMatchObject({
    reach: 'network' satisfies typeof other.capabilities.reach,
    ttl: { minMs: 50 },
  });
});

test('a waiter enters when the hold of a dead process has ended by the clock of the host, not a hundredth of its ttl later', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const records = new Records();
  const [dead, lives] = [0, 1].map(() =>
    open(Object.assign(new MemoryStore(records, { clock, now: uptimeMs }), { pace: { maxPollMs: 4_000 } })),
  ) as [LockBackend, LockBackend];
  await take(dead, request('a', { ttlMs: 20_000 }));
  const waits = request('a');
  // Who saw the hold from its beginning on would know its end by that.
  await vi.advanceTimersByTimeAsync(5_000);
  await lives.attempt(waits, true, call);
  let isIn = false;
  void lives.awaitTurn?.(waits, call)?.then(() => (isIn = true));
  await vi.advanceTimersByTimeAsync(14_990);
  expect(isIn).toBe(false);
  await vi.advanceTimersByTimeAsync(30);
  expect(isIn).toBe(true);
});

test('tokens are above the floor of the store, also where all clocks of the process are behind it', async () => {
  const floor = Date.now() * 1_000 + 86_400_000_000;
  const backend = open(hostStore(() => floor).store);
  expect((await take(backend, request('a'))).fencingToken).toBeGreaterThan(BigInt(floor));
});

test('a record is idle by the floor of a store whose clock does not begin in 1970', async () => {
  for (const [floor, isIdle] of [
    [() => Date.now() * 1_000, true],
    // The tokens of a record that is made anew could be lower.
    [() => Date.now() * 1_000 - 86_400_000_000, false],
  ] as const) {
    const { store, writes } = hostStore(floor);
    const backend = open(store);
    await backend.release(await take(backend, request('a')), call);
    expect(writes.map((write) => write.isIdle)).toEqual([false, isIdle]);
  }
});

test('a write says when the last of its holds has ended, and nothing once there is none', async () => {
  const { store, writes } = hostStore(() => 0);
  const backend = open(store);
  const shared = { mode: { kind: 'shared' } } as const;
  const before = uptimeMs();
  const grants = [];
  for (const ttlMs of [60_000, 1_000]) grants.push(await take(backend, request('a', { ...shared, ttlMs })));
  const [first, second] = writes.map(({ heldUntilMs = 0 }) => heldUntilMs - before);
  for (const until of [first, second]) {
    expect(until).toBeGreaterThanOrEqual(60_000);
    expect(until).toBeLessThan(65_000);
  }
  for (const grant of grants) await backend.release(grant, call);
  expect(writes.at(-1)?.heldUntilMs).toBeUndefined();
});
