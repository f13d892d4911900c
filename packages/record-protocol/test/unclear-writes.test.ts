import { describe, expect, it } from 'vitest';
import { acquire, call, callFor, open, request, take, until } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

describe.each([true, false])(
  'a write that the client repeats by itself, conflicts with the record: %s',
  (tells) => {
    function repeating(records: Records): MemoryStore {
      const store = new MemoryStore(records, { tells });
      store.instead = (_, apply) => {
        apply();
        return apply();
      };
      return store;
    }

    it('is no loss: the own write was first', async () => {
      const records = new Records();
      const backend = open(repeating(records));
      for (let round = 0; round < 3; round += 1) {
        const grant = await take(backend, request('a'));
        expect(await backend.renew([{ grant, ttlMs: 5_000 }], call)).toEqual([{ status: 'held' }]);
        expect(await backend.release(grant, call)).toBe('released');
      }
      expect((await open(new MemoryStore(records)).inspect('a', call)).holders).toEqual([]);
    });

    it('grants to a waiter once', async () => {
      const backend = open(repeating(new Records()));
      const first = await take(backend, request('a'));
      const second = acquire(backend, request('a'));
      await until(async () => (await backend.inspect('a', call)).waiters.length === 1);
      expect(await backend.release(first, call)).toBe('released');
      const grant = await second;
      expect(grant.fencingToken).toBeGreaterThan(first.fencingToken ?? 0n);
      expect(await backend.release(grant, call)).toBe('released');
    });
  },
);

describe('a write whose answer is lost', () => {
  /** A store whose next write takes place, and fails. */
  function losing(records: Records) {
    const store = new MemoryStore(records);
    return {
      store,
      loseNext() {
        store.instead = (_, apply) => {
          store.instead = undefined;
          apply();
          throw new Error('cut off');
        };
      },
    };
  }

  it('is found by its id: a release that was carried out is known to be, and a grant lasts', async () => {
    const { store, loseNext } = losing(new Records());
    const backend = open(store);
    const free = await take(backend, request('a'));
    await backend.release(free, call);
    loseNext();
    const before = performance.now();
    const grant = await take(backend, request('a'));
    expect(grant.countedFrom).toBeGreaterThanOrEqual(before);
    loseNext();
    expect(await backend.renew([{ grant, ttlMs: 5_000 }], call)).toEqual([{ status: 'held' }]);
    loseNext();
    expect(await backend.release(grant, call)).toBe('released');
  });

  it('counts a grant from before its sending', async () => {
    const records = new Records();
    const { store } = losing(records);
    const backend = open(store);
    const first = await take(backend, request('a'));
    await backend.release(first, call);
    let appliedAt = 0;
    store.instead = async (_, apply) => {
      store.instead = undefined;
      appliedAt = performance.now();
      apply();
      await new Promise((resolve) => setTimeout(resolve, 100));
      throw new Error('cut off');
    };
    const grant = await take(backend, request('a', { ttlMs: 1_000 }));
    expect(grant.countedFrom + (grant.validForMs ?? 1_000)).toBeLessThanOrEqual(appliedAt + 1_000);
  });

  it('leaves nothing behind when its acquire is given up', async () => {
    const records = new Records();
    const { store } = losing(records);
    const backend = open(store);
    const wanted = request('a');
    store.instead = async (_, apply) => {
      store.instead = undefined;
      apply();
      return new Promise(() => undefined);
    };
    await expect(backend.attempt(wanted, true, callFor(50))).rejects.toThrow(/no answer/);
    await backend.abandon(wanted, call);
    expect((await backend.inspect('a', call)).holders).toEqual([]);
  });
});
