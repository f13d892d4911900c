import { describe, expect, it } from 'vitest';
import { createRecordBackend } from '../src/index.ts';
import { acquire, call, callFor, isContended, open, request, sleep, take, until } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

const pace = { waiterTtlMs: 300 };

describe('the waiters of another process', () => {
  it('are passed over once its heartbeat has stood still', async () => {
    const records = new Records();
    const one = open(new MemoryStore(records, { pace }));
    const grant = await take(one, request('a'));
    const dying = new MemoryStore(records, { pace });
    const dead = createRecordBackend(dying);
    const waiting = request('a');
    await dead.attempt(waiting, true, call);
    // From now on the other process is dead: its writes never come.
    dying.instead = () => new Promise(() => undefined);
    const behind = acquire(one, request('a'));
    await one.release(grant, call);
    const startedAt = performance.now();
    const next = await behind;
    expect(performance.now() - startedAt).toBeGreaterThan(100);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect((await one.inspect('a', call)).waiters).toEqual([]);
    await one.release(next, call);
    await dead.close();
  });

  it('keep their places for as long as it beats', async () => {
    const records = new Records();
    // Longer than a busy machine keeps a process from its turn.
    const patient = { pace: { waiterTtlMs: 1_000 } };
    const [one, two] = [open(new MemoryStore(records, patient)), open(new MemoryStore(records, patient))];
    const grant = await take(one, request('a'));
    const first = acquire(two, request('a'));
    await until(async () => (await one.inspect('a', call)).waiters.length === 1);
    const order: string[] = [];
    void first.then(() => order.push('first'));
    const second = acquire(one, request('a')).then((given) => {
      order.push('second');
      return given;
    });
    await sleep(2_000);
    await one.release(grant, call);
    await two.release(await first, call);
    await one.release(await second, call);
    expect(order).toEqual(['first', 'second']);
  });

  it('are gone with a process that has left', async () => {
    const records = new Records();
    const [one, two] = [open(new MemoryStore(records)), createRecordBackend(new MemoryStore(records))];
    const grant = await take(one, request('a'));
    await two.attempt(request('a'), true, call);
    await two.close();
    await one.release(grant, call);
    // The entry of the closed backend is still in the record, and its heartbeat is not.
    expect(await isContended(open(new MemoryStore(records)), 'a')).toBe(false);
  });

  it('whose process lives and does not take its turn are passed over', async () => {
    const records = new Records();
    const [one, two] = [open(new MemoryStore(records, { pace })), open(new MemoryStore(records, { pace }))];
    const grant = await take(one, request('a'));
    await two.attempt(request('a'), true, call);
    const other = acquire(two, request('b')).then(() =>
      acquire(two, request('b'), callFor(4_000)).catch(() => undefined),
    );
    const behind = acquire(one, request('a'));
    await one.release(grant, call);
    await behind;
    void other;
  });
});

it('a queue that is as long as the store allows refuses the next waiter, and serves all others', async () => {
  const records = new Records();
  const backend = open(new MemoryStore(records, { maxValueBytes: 8_000 }));
  const holder = await take(backend, request('a'));
  const served: string[] = [];
  const refused: unknown[] = [];
  const all = Array.from({ length: 600 }, () => request('a')).map((wanted) =>
    acquire(backend, wanted).then(
      async (grant) => {
        served.push(wanted.acquisitionId);
        await backend.release(grant, call);
      },
      (error: unknown) => void refused.push(error),
    ),
  );
  await until(async () => (await backend.inspect('a', call)).waiters.length + refused.length === 600);
  expect(refused[0]).toMatchObject({
    attempt: { status: 'full', because: expect.stringContaining('8000 bytes') },
  });
  await backend.release(holder, call);
  await Promise.all(all);
  expect(served.length + refused.length).toBe(600);
  for (const { value } of records.byKey.values()) expect(value.length).toBeLessThanOrEqual(8_000);
});

it('tokens rise also after the store has deleted the record of a free lock', async () => {
  const records = new Records();
  const backend = open(new MemoryStore(records));
  const first = await take(backend, request('a'));
  await backend.release(first, call);
  // A store deletes what was idle for a day. Wall clocks have steps of a millisecond, so a day is one of them at least.
  const released = Date.now();
  await until(() => Date.now() > released);
  records.byKey.clear();
  const second = await take(backend, request('a'));
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken ?? 0n);
});
