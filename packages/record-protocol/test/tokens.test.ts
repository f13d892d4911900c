import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRecordBackend } from '../src/create-record-backend.ts';
import { acquire, call, callFor, open, request, take, until } from './fixture.ts';
import { MemoryStore, type MemoryStoreOptions, Records } from './memory-records.ts';

const KEY = 'locks/lock/a';
const NOW = 1_790_000_000_000;
const HOUR = 3_600_000;

/** Writes another token into the record of the lock `a`, as somebody else could. */
function setToken(records: Records, token: number): void {
  const { value, version } = records.byKey.get(KEY) ?? expect.fail('there is no record');
  const text = Buffer.from(value)
    .toString('utf8')
    .replace(/"token":\d+/, `"token":${token}`);
  records.byKey.set(KEY, { value: Buffer.from(text), version });
}

test('no grant follows the last number that can be told from the next, and what is held can be released', async () => {
  const records = new Records();
  const [mine, other] = [open(new MemoryStore(records)), open(new MemoryStore(records))];
  const first = await take(mine, request('a'));
  await mine.release(first, call);
  setToken(records, Number.MAX_SAFE_INTEGER - 2);
  const last = await take(other, request('a'));
  expect(last.fencingToken).toBe(BigInt(Number.MAX_SAFE_INTEGER) - 1n);
  await other.release(last, call);
  const held = await take(mine, request('a'));
  expect(held.fencingToken).toBe(BigInt(Number.MAX_SAFE_INTEGER));
  for (const mode of ['exclusive', 'shared'] as const)
    await expect(other.attempt(request('a', { mode: { kind: mode } }), true, call)).rejects.toMatchObject({
      code: 'TOKENS_SPENT',
    });
  expect(await mine.renew([{ grant: held, ttlMs: 5_000 }], call)).toEqual([{ status: 'held' }]);
  expect(await mine.release(held, call)).toBe('released');
  await expect(mine.attempt(request('a'), true, call)).rejects.toMatchObject({ code: 'TOKENS_SPENT' });
});

test('a waiter that no token is left for keeps its place, and the holder may leave', async () => {
  const records = new Records();
  const mine = open(new MemoryStore(records));
  const held = await take(mine, request('a'));
  const wanted = request('a');
  expect(await mine.attempt(wanted, true, call)).toEqual({ status: 'contended' });
  const before = records.byKey.get(KEY);
  const text = Buffer.from(before?.value ?? []).toString('utf8');
  const spent = text.replace(/"token":\d+/, `"token":${Number.MAX_SAFE_INTEGER}`);
  records.byKey.set(KEY, { value: Buffer.from(spent), version: 'of somebody else' });
  expect(await mine.release(held, call)).toBe('released');
  expect(await mine.inspect('a', call)).toMatchObject({
    holders: [],
    waiters: [{ acquisitionId: wanted.acquisitionId }],
  });
});

test('a record whose holder has a higher token than the record says is refused', async () => {
  const records = new Records();
  const backend = open(new MemoryStore(records));
  await take(backend, request('a'));
  setToken(records, 7);
  await expect(open(new MemoryStore(records)).inspect('a', call)).rejects.toMatchObject({
    code: 'MALFORMED_RECORD',
  });
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A store that deletes idle records after a day. Its own clock is right. */
class ForgetfulStore extends MemoryStore {
  constructor(records: Records, options: MemoryStoreOptions = {}) {
    super(records, { now: () => storeNow, ...options });
    this.instead = (write, apply) => {
      idle[write.isIdle ? 'add' : 'delete'](write.key);
      return apply();
    };
  }
}

let storeNow = NOW;
const idle = new Set<string>();

/** One day passes: the store deletes what was idle. */
function passOneDay(records: Records): void {
  storeNow += 25 * HOUR;
  for (const key of idle) records.byKey.delete(key);
}

async function tokenBy(records: Records, wallClock: number): Promise<bigint> {
  vi.setSystemTime(wallClock);
  const backend = createRecordBackend(new ForgetfulStore(records));
  const grant = await take(backend, request('a'));
  await backend.release(grant, call);
  await backend.close();
  return grant.fencingToken ?? 0n;
}

test.each([
  ['the first clock is two days ahead', 48, 0],
  ['the first clock is two years ahead', 2 * 365 * 24, 0],
  ['the second clock is two days behind', 0, -48],
  ['the first clock is ahead and the second behind', 13, -13],
])('tokens rise although the record was deleted and %s', async (_, first, second) => {
  const records = new Records();
  storeNow = NOW;
  idle.clear();
  const before = await tokenBy(records, storeNow + first * HOUR);
  passOneDay(records);
  const after = await tokenBy(records, storeNow + second * HOUR);
  expect(after).toBeGreaterThan(before);
});

test('the record of a process with a right clock may be deleted; that of a store without a time may not', async () => {
  const records = new Records();
  storeNow = NOW;
  idle.clear();
  await tokenBy(records, NOW + HOUR);
  expect(idle).toContain(KEY);
  const untold: boolean[] = [];
  const store = new MemoryStore(records);
  store.instead = (write, apply) => {
    if (write.key === 'locks/lock/b') untold.push(write.isIdle);
    return apply();
  };
  const backend = open(store);
  await backend.release(await take(backend, request('b')), call);
  expect(untold).toEqual([false, false]);
});

test('tokens go on after the machine has slept, although its monotonic clock stood still', async () => {
  const records = new Records();
  const backend = open(new MemoryStore(records));
  await backend.release(await take(backend, request('b')), call);
  vi.setSystemTime(NOW + 72 * HOUR);
  const other = open(new MemoryStore(new Records()));
  const elsewhere = await take(other, request('a'));
  const here = await acquire(backend, request('a'), callFor(1_000));
  const apart = Number((here.fencingToken ?? 0n) - (elsewhere.fencingToken ?? 0n));
  expect(Math.abs(apart)).toBeLessThan(60_000_000);
  await until(() => records.byKey.has(KEY));
});
