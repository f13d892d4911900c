import type { SlotEntry } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import { slotsIn, resultsIn } from '../src/once.ts';
import { MemoryStore, type MemoryStoreOptions, Records } from './memory-records.ts';

/** Beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: 'd\n"é', at: 1_900_000_000_000 },
});
const recordIn = (store: MemoryStore, prefix = 'locks/') => slotsIn(store, prefix, 'testRecord()');

/** A store and the results in it, by a clock of the store that only the test moves. */
function timed(options: MemoryStoreOptions = {}) {
  const time = { ms: 1_900_000_000_000 };
  const records = new Records();
  const store = new MemoryStore(records, { now: () => time.ms, ...options });
  return { time, records, results: resultsIn(store, 'locks/', 'testResults()') };
}

describe('the record of once', () => {
  it.each([true, false])('keeps the newest entry of each job, where a conflict tells: %s', async (tells) => {
    const records = new Records();
    const record = recordIn(new MemoryStore(records, { tells }));
    const other = recordIn(new MemoryStore(records, { tells, now: () => 5_000 }));
    expect(await record.read('a')).toEqual({ entry: undefined, storeTime: undefined });
    expect(await record.write('a', entry(TOKEN))).toBe(true);
    expect(await other.write('a', entry(TOKEN - 1n))).toBe(false);
    expect(await other.read('a')).toEqual({ entry: entry(TOKEN), storeTime: 5_000 });
    expect(await other.write('a', { ...entry(TOKEN), state: 'begun' })).toBe(true);
    expect(await other.write('a', entry(TOKEN + 1n))).toBe(true);
    expect(await record.read('a')).toMatchObject({ entry: entry(TOKEN + 1n) });
  });

  it('tells the time of a store that tells it only if it is asked', async () => {
    const store = new MemoryStore(new Records(), { asked: () => 7_000 });
    expect(await recordIn(store).read('a')).toEqual({ entry: undefined, storeTime: 7_000 });
  });

  it('lets no older token win a race, whoever is overtaken between read and write', async () => {
    const records = new Records();
    const store = new MemoryStore(records);
    const newer = recordIn(new MemoryStore(records));
    store.instead = async (_, apply) => {
      store.instead = undefined;
      await newer.write('a', entry(2n));
      return apply();
    };
    expect(await recordIn(store).write('a', entry(1n))).toBe(false);
    expect((await newer.read('a')).entry).toEqual(entry(2n));
  });

  it('ends with the newest of twenty entries that are written at once', async () => {
    const records = new Records();
    const all = Array.from({ length: 20 }, () => recordIn(new MemoryStore(records)));
    await Promise.all(all.map((record, at) => record.write('a', entry(BigInt(at + 1)))));
    expect((await all[0]?.read('a'))?.entry).toEqual(entry(20n));
  });

  it('has keys that are those of no lock, of no other job and of no other prefix', async () => {
    const records = new Records();
    const names = ['a', 'lock/a', 'a/b', 'a%2Fb', 'once/a', 'é'];
    for (const prefix of ['', 'locks/', 'once/', 'locks/once/'])
      for (const name of names) await recordIn(new MemoryStore(records), prefix).write(name, entry(1n));
    expect(records.byKey.size).toBe(4 * names.length);
    // The first `lock/` of a key ends the prefix of a lock.
    expect([...records.byKey.keys()].filter((key) => /(^|\/)lock\//.test(key))).toEqual([]);
  });

  it('names what something else has written, and an entry of a newer version', async () => {
    const records = new Records();
    const put = (text: string) =>
      records.byKey.set('locks/once/a', { value: Buffer.from(text), version: 'v' });
    const record = recordIn(new MemoryStore(records));
    for (const text of ['', 'of another program', '{}\n', 'null\n{}', '{"version":1,"token":"x"}\n{}']) {
      put(text);
      await expect(record.read('a')).rejects.toMatchObject({ code: 'MALFORMED_RECORD' });
      await expect(record.write('a', entry(1n))).rejects.toMatchObject({ code: 'MALFORMED_RECORD' });
    }
    put('{"version":2,"token":"1"}\n{}');
    await expect(record.read('a')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });
});

describe('the results of coalesce', () => {
  it('end by the time of the store, and their tokens count on', async () => {
    const { time, results } = timed();
    await results.set('a', 'é\n', TOKEN, 1_000);
    time.ms += 990;
    expect(await results.get('a')).toBe('é\n');
    time.ms += 20;
    expect(await results.get('a')).toBeUndefined();
    const late = results.set('a', 'late', TOKEN - 1n, 1_000);
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    await results.set('a', 'again', TOKEN, 1_000);
    expect(await results.get('a')).toBe('again');
  });

  it('may be deleted by the store after a day, unless they last for as long', async () => {
    const { results, records } = timed();
    const idle: boolean[] = [];
    const write = records.write.bind(records);
    records.write = (one) => {
      idle.push(one.isIdle);
      return write(one);
    };
    await results.set('short', 'x', 1n, 60_000);
    await results.set('long', 'x', 1n, 23 * 3_600_000 + 1);
    expect(idle).toEqual([true, false]);
  });

  it('are refused where the store has no room for them', async () => {
    const { results } = timed({ maxValueBytes: 1_000 });
    const long = results.set('a', 'x'.repeat(1_000), 1n, 1_000);
    await expect(long).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    expect(await results.get('a')).toBeUndefined();
  });
});
