import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { CallCounter } from '../around-calls.ts';
import { nastyNames } from '../nasty-names.ts';
import { list, needs } from '../needs.ts';
import { holdersOf } from '../raw.ts';

export const namesCases: readonly ConformanceCase[] = [
  {
    id: 'names/never-collide',
    clause: '§10.2',
    title: '300 distinct nasty names are held at once, each by its own holder, and released one by one',
    async run(context) {
      const names = nastyNames(context.name(), 300);
      assert.equal(new Set(names).size, 300);
      const { backend, locks } = await context.client({ ttlMs: 60_000 });
      const leases = await Promise.all(names.map((name) => locks.lock(name).tryAcquire()));
      const holds = async (index: number): Promise<void> => {
        const [name, lease] = [names[index] as string, leases[index]];
        assert.ok(lease, `${JSON.stringify(name)} was mistaken for another name`);
        assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId], JSON.stringify(name));
      };
      await Promise.all(names.map((_, index) => holds(index)));
      const held = leases.filter((lease) => lease !== undefined);
      // Every second lock is released: the others must stay held.
      await Promise.all(held.filter((_, index) => index % 2 === 0).map((lease) => lease.release()));
      await Promise.all(
        names.map(async (name, index) => {
          if (index % 2 === 0) assert.deepEqual(await holdersOf(backend, name), [], JSON.stringify(name));
          else await holds(index);
        }),
      );
      await Promise.all(held.filter((_, index) => index % 2 === 1).map((lease) => lease.release()));
    },
  },
  {
    id: 'names/exclude-as-written',
    clause: '§10.2',
    title: 'a nasty name excludes itself, from another client too',
    async run(context) {
      const [first, second] = [await context.client(), await context.client()];
      const names = nastyNames(context.name(), 60);
      const leases = await Promise.all(names.map((name) => first.locks.lock(name).acquire()));
      const others = await Promise.all(names.map((name) => second.locks.lock(name).tryAcquire()));
      const twice = names.filter((_, index) => others[index] !== undefined);
      assert.deepEqual(twice, []);
      await Promise.all(leases.map((lease) => lease.release()));
    },
  },
  {
    id: 'names/are-listed-unchanged',
    clause: '§14.2',
    title: 'list gives nasty names back character by character',
    ...needs(list),
    async run(context) {
      const { locks } = await context.client();
      const base = context.name();
      const names = nastyNames(base, 300).filter((name) => name.startsWith(base));
      const leases = await Promise.all(names.map((name) => locks.lock(name).acquire()));
      const listed: string[] = [];
      for await (const { resource } of locks.list(base)) listed.push(resource);
      assert.deepEqual(listed.sort(), names.toSorted());
      await Promise.all(leases.map((lease) => lease.release()));
    },
  },
  {
    id: 'names/bad-ones-are-refused',
    clause: '§10.1',
    title: 'an empty, too long, ill-formed or non-string name is refused at once, and nothing is sent',
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap });
      const tooLong = ['x'.repeat(513), 'é'.repeat(257), `${'😀'.repeat(128)}x`];
      const bad = [
        '',
        ...tooLong,
        'lone \ud800',
        '\udc00 lone',
        42,
        null,
        undefined,
        {},
        ['a'],
        Symbol('name'),
      ];
      for (const name of bad as string[]) {
        assert.throws(() => locks.lock(name), { code: 'LOCK_INVALID_ARGUMENT' });
        await assert.rejects(async () => locks.inspect(name), { code: 'LOCK_INVALID_ARGUMENT' });
        await assert.rejects(async () => locks.forceRelease(name), { code: 'LOCK_INVALID_ARGUMENT' });
      }
      assert.equal(calls.total, 0);
    },
  },
];
