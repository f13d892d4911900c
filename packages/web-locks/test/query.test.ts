import { createLocks } from '@locks/core';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { hold } from './hold.ts';
import { make, two } from './lab.ts';

describe('query', () => {
  it('shows what was asked before it, answered or not', async () => {
    const locks = make();
    const order = [hold(locks, 'a'), hold(locks, 'b', { mode: 'shared' }), hold(locks, 'a')];
    const { held, pending } = await locks.query();
    expect(held.map(({ name, mode }) => `${name} ${mode}`)).toEqual(['a exclusive', 'b shared']);
    expect(pending.map(({ name }) => name)).toEqual(['a']);
    for (const one of order) (await one).release();
  });

  it('shows requests of all clients in their order', async () => {
    const [one, other] = two();
    const held = await hold(one, 'a');
    const waiting: Promise<unknown>[] = [];
    for (const locks of [other, one, other]) {
      waiting.push(locks.request('a', () => {}));
      await locks.query();
    }
    const { pending } = await one.query();
    expect(pending.map(({ clientId }) => clientId)).toEqual([other.clientId, one.clientId, other.clientId]);
    expect(await other.query()).toEqual(await one.query());
    held.release();
    await Promise.all(waiting);
  });

  it('shows nothing of what is over, and keeps nothing', async () => {
    const locks = make();
    const names = Array.from({ length: 50 }, (_, index) => `name ${index}`);
    await Promise.all(names.map((name) => locks.request(name, () => {})));
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  it('shows a name that is too long for the store: whole to its client, its beginning to others', async () => {
    const [one, other] = two();
    const name = 'long '.repeat(500);
    const held = await hold(one, name);
    expect((await one.query()).held[0]?.name).toBe(name);
    expect((await other.query()).held[0]?.name).toMatch(/^(long )+…$/);
    held.release();
  });

  it("shows holders that use core's own locks", async () => {
    const store = new MemoryStore();
    const core = createLocks(memoryBackend(store), { label: 'job 7' });
    const lease = await core.lock('web-locks:a').acquire();
    const locks = make(memoryBackend(store));
    expect((await locks.query()).held).toEqual([{ name: 'a', mode: 'exclusive', clientId: 'job 7' }]);
    await lease.release();
  });
});
