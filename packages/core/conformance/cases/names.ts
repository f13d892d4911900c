import assert from 'node:assert/strict';
import { type ConformanceCase, noHook, without } from '../case.ts';
import type { Client } from '../case-context.ts';
import { CallCounter } from '../around-calls.ts';
import { nastyNames } from '../nasty-names.ts';
import { clientsShareTheStore, list, needs } from '../needs.ts';
import { holdersOf } from '../raw.ts';
import { someAtOnce } from '../some-at-once.ts';

/** Prefixes and names of which two make the same text, also with what stores put between the two. */
const CUTS: readonly (readonly [prefix: string, name: string])[] = [
  ['a', 'bc'],
  ['ab', 'c'],
  ['a:', 'b:c'],
  ['a:b:', 'c'],
  ['a:', ':c'],
  ['a/', 'b/c'],
  ['a/', 'b'],
  ['a/b/', 'c'],
  ['a/', 'lock/c'],
  ['a/lock/', 'c'],
  ['/a', 'b'],
  ['/a', 'b/c'],
  ['/a/b', 'c'],
  ['a_', 'locks'],
  ['a_b_', 'locks'],
];

export const namesCases: readonly ConformanceCase[] = [
  {
    id: 'names/never-collide',
    clause: '§10.2',
    title: '300 distinct nasty names are held at once, each by its own holder, and released one by one',
    async run(context) {
      const names = nastyNames(context.name(), 300);
      assert.equal(new Set(names).size, 300);
      const { backend, locks } = await context.client({ ttlMs: 60_000 });
      const leases = await someAtOnce(names, (name) => locks.lock(name).tryAcquire());
      const holds = async (index: number): Promise<void> => {
        const [name, lease] = [names[index] as string, leases[index]];
        assert.ok(lease, `${JSON.stringify(name)} was mistaken for another name`);
        assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId], JSON.stringify(name));
      };
      await someAtOnce(names, (_, index) => holds(index));
      const held = leases.filter((lease) => lease !== undefined);
      // Every second lock is released: the others must stay held.
      await someAtOnce(
        held.filter((_, index) => index % 2 === 0),
        (lease) => lease.release(),
      );
      await someAtOnce(names, async (name, index) => {
        if (index % 2 === 0) assert.deepEqual(await holdersOf(backend, name), [], JSON.stringify(name));
        else await holds(index);
      });
      await someAtOnce(
        held.filter((_, index) => index % 2 === 1),
        (lease) => lease.release(),
      );
    },
  },
  {
    id: 'names/exclude-as-written',
    clause: '§10.2',
    title: 'a nasty name excludes itself, from another client too',
    async run(context) {
      const [first, second] = [await context.client(), await context.client()];
      const names = nastyNames(context.name(), 60);
      const leases = await someAtOnce(names, (name) => first.locks.lock(name).acquire());
      const others = await someAtOnce(names, (name) => second.locks.lock(name).tryAcquire());
      const twice = names.filter((_, index) => others[index] !== undefined);
      assert.deepEqual(twice, []);
      await someAtOnce(leases, (lease) => lease.release());
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
      const leases = await someAtOnce(names, (name) => locks.lock(name).acquire());
      const listed: string[] = [];
      for await (const { name } of locks.list(base)) listed.push(name);
      assert.deepEqual(listed.sort(), names.toSorted());
      await someAtOnce(leases, (lease) => lease.release());
    },
  },
  {
    id: 'names/prefixes-are-apart',
    clause: '§10.3',
    title:
      'the same text, cut into prefix and name in several ways, is a lock of its own for each, or the prefix is refused',
    missing: (_, { createBackendUnder }) => {
      if (createBackendUnder === undefined) return noHook('createBackendUnder');
      return createBackendUnder === 'none' ? without('no prefix stands before the names') : undefined;
    },
    refused: clientsShareTheStore,
    async run(context) {
      const clients = new Map<string, Client | undefined>();
      for (const [prefix] of CUTS) {
        if (!clients.has(prefix)) clients.set(prefix, await context.clientUnder(prefix));
      }
      const cuts = CUTS.flatMap(([prefix, name]) => {
        const client = clients.get(prefix);
        return client === undefined ? [] : [{ prefix, name, ...client }];
      });
      assert.ok(cuts.length > 1, 'every prefix was refused');
      const leases = [];
      for (const { prefix, name, locks } of cuts) {
        const lease = await locks.lock(name).tryAcquire();
        assert.ok(lease, `${name} under ${prefix} was mistaken for a lock under another prefix`);
        leases.push(lease);
      }
      for (const [at, { prefix, name, backend }] of cuts.entries()) {
        assert.deepEqual(
          await holdersOf(backend, name),
          [leases[at]?.acquisitionId],
          `${name} under ${prefix}`,
        );
      }
      for (const { prefix, locks, backend } of cuts) {
        if (backend.list === undefined) continue;
        const listed: string[] = [];
        for await (const { name } of locks.list()) listed.push(name);
        const own = cuts.filter((cut) => cut.prefix === prefix).map(({ name }) => name);
        assert.deepEqual(listed.toSorted(), own.toSorted(), `list under ${prefix}`);
      }
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
  {
    id: 'names/own-ones-are-refused',
    clause: '§10.1',
    title:
      'a lock of an application has no name as those of the locks that these packages need: it is refused, and nothing is sent',
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap });
      for (const name of ['@locks/', '@locks/newest:a']) {
        assert.throws(() => locks.lock(name), { code: 'LOCK_INVALID_ARGUMENT' });
      }
      assert.equal(calls.total, 0);
      // An operator sees such a lock, and ends it.
      assert.deepEqual((await locks.inspect('@locks/newest:a')).holders, []);
      await (await locks.lock('@lock/a').acquire()).release();
    },
  },
];
