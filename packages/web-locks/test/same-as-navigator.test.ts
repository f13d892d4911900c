import { setTimeout as delay } from 'node:timers/promises';
import { memoryBackend } from '@locks/memory';
import type { LockManager as PlatformLocks } from 'node:worker_threads';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type WebLocks, webLocks } from '../src/index.ts';
import { failure, hold } from './hold.ts';
import { randomProgram, run } from './programs.ts';

/** What both must do: the platform's own lock manager, where this Node has one, and ours. */
type Both = Pick<WebLocks, 'request' | 'query'>;

// Its type is the platform's too.
const ours: PlatformLocks & WebLocks = webLocks(memoryBackend());
const platform = (globalThis.navigator as { locks?: Both }).locks;
const managers: [string, Both][] = [['webLocks()', ours]];
if (platform !== undefined) managers.push(['navigator.locks', platform]);

afterAll(() => ours.close());

describe.each(managers)('%s', (_, locks) => {
  let name = '';
  let count = 0;
  beforeEach(() => {
    name = `resource ${(count += 1)}`;
  });
  const request = locks.request.bind(locks) as (...passed: unknown[]) => Promise<unknown>;
  const modes = async (of: string): Promise<{ held: string[]; pending: string[] }> => {
    const { held, pending } = await locks.query();
    const named = (list: { name: string; mode: string }[]): string[] =>
      list.filter((one) => one.name === of).map(({ mode }) => mode);
    return { held: named(held), pending: named(pending) };
  };

  it('refuses what is no request with a TypeError, as a rejection', async () => {
    for (const passed of [
      [],
      [name],
      [name, undefined],
      [name, null],
      [name, {}],
      [name, 'text'],
      [name, { mode: 'foo' }, () => {}],
      [name, { mode: null }, () => {}],
      [name, { mode: 'exclusive' }, undefined],
      [Symbol('name'), () => {}],
      ...[null, 1, 'text', false, {}, () => {}, globalThis].map((signal) => [name, { signal }, () => {}]),
    ]) {
      expect(await failure(request(...passed)), passed.map(String).join()).toBe('TypeError');
    }
  });

  it('takes null and undefined as no options', async () => {
    expect(await request(name, undefined, () => 1)).toBe(1);
    expect(await request(name, null, () => 2)).toBe(2);
  });

  it('refuses options that exclude each other', async () => {
    const { signal } = new AbortController();
    for (const options of [
      { steal: true, ifAvailable: true },
      { steal: true, mode: 'shared' },
      { steal: true, signal },
      { ifAvailable: true, signal },
    ]) {
      expect(await failure(request(name, options, () => {})), Object.keys(options).join()).toBe(
        'NotSupportedError',
      );
    }
  });

  it('reserves names that begin with a hyphen', async () => {
    expect(await failure(request('-', () => {}))).toBe('NotSupportedError');
    expect(await failure(request('-x', () => {}))).toBe('NotSupportedError');
    expect(await request('x-', () => 'fine')).toBe('fine');
  });

  it('takes any other string as a name', async () => {
    for (const odd of ['', 'a\0b', '\uD800', '\uDC00', '\uDC00\uD800', '\uFFFF', '😀', 'x'.repeat(5_000)]) {
      expect(await request(odd, (lock: { name: string }) => lock.name)).toBe(odd);
    }
  });

  it('does not mangle lone surrogates into one name', async () => {
    const held = await hold(locks, '\uD800');
    expect(await request('\uFFFD', { ifAvailable: true }, (lock: unknown) => lock !== null)).toBe(true);
    expect(await request('\uDBFF', { ifAvailable: true }, (lock: unknown) => lock !== null)).toBe(true);
    expect(await request('\uD800', { ifAvailable: true }, (lock: unknown) => lock !== null)).toBe(false);
    held.release();
    await held.requested;
  });

  it('gives the callback a Lock with name and mode', async () => {
    const held = await hold(locks, name, { mode: 'shared' });
    expect([held.lock.name, held.lock.mode, Object.prototype.toString.call(held.lock)]).toEqual([
      name,
      'shared',
      '[object Lock]',
    ]);
    held.release();
    await held.requested;
  });

  it('settles with the outcome of the callback, after the release', async () => {
    expect(await request(name, () => 123)).toBe(123);
    expect(await request(name, async () => 'later')).toBe('later');
    // oxlint-disable-next-line unicorn/no-thenable -- a thenable is what the case is about
    const thenable = { then: (ok: (value: string) => void) => ok('thenable') };
    expect(await request(name, () => thenable)).toBe('thenable');
    const order: string[] = [];
    const held = await hold(locks, name);
    const next = request(name, () => order.push('next'));
    const returned = held.requested.then(() => order.push('returned'));
    held.release();
    await Promise.all([next, returned]);
    expect(order.toSorted()).toEqual(['next', 'returned']);
    expect(await modes(name)).toEqual({ held: [], pending: [] });
  });

  it('rejects with what the callback rejects with', async () => {
    const thrown = new Error('the callback');
    await expect(request(name, () => Promise.reject(thrown))).rejects.toBe(thrown);
    expect(await modes(name)).toEqual({ held: [], pending: [] });
  });

  it('grants in order: readers together, a writer holds back the readers behind it', async () => {
    const first = await hold(locks, name, { mode: 'shared' });
    const second = await hold(locks, name, { mode: 'shared' });
    const order: string[] = [];
    const writer = request(name, () => void order.push('writer'));
    const reader = request(name, { mode: 'shared' }, () => void order.push('reader'));
    expect(await modes(name)).toEqual({ held: ['shared', 'shared'], pending: ['exclusive', 'shared'] });
    first.release();
    await first.requested;
    expect(order).toEqual([]);
    second.release();
    await Promise.all([writer, reader]);
    expect(order).toEqual(['writer', 'reader']);
  });

  it('shows all readers as holders after the writer before them was released', async () => {
    const writer = await hold(locks, name);
    const readers = [1, 2, 3].map(() => hold(locks, name, { mode: 'shared' }));
    expect(await modes(name)).toEqual({ held: ['exclusive'], pending: ['shared', 'shared', 'shared'] });
    writer.release();
    await writer.requested;
    expect(await modes(name)).toEqual({ held: ['shared', 'shared', 'shared'], pending: [] });
    for (const { release, requested } of await Promise.all(readers)) {
      release();
      await requested;
    }
  });

  it('calls callbacks in the order of the requests, whatever their names', async () => {
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const all = [1, 2, 3].map((one) => request(name, { mode: 'shared' }, note(`reader ${one}`)));
    await request(`${name} other`, note('other'));
    expect(order).toEqual(['reader 1', 'reader 2', 'reader 3', 'other']);
    await Promise.all(all);
  });

  it('ifAvailable: null where it would wait, and the result of the callback all the same', async () => {
    const held = await hold(locks, name);
    const thrown = new Error('the callback');
    expect(await request(name, { ifAvailable: true }, (lock: unknown) => [lock])).toEqual([null]);
    await expect(
      request(name, { ifAvailable: true }, () => {
        throw thrown;
      }),
    ).rejects.toBe(thrown);
    expect(await request(name, { ifAvailable: true, mode: 'shared' }, (lock: unknown) => lock)).toBe(null);
    held.release();
    await held.requested;
    expect(await request(name, { ifAvailable: true }, (lock: unknown) => lock !== null)).toBe(true);
  });

  it('ifAvailable: a reader joins readers, but does not overtake a writer that waits', async () => {
    const reader = await hold(locks, name, { mode: 'shared' });
    const other = { ifAvailable: true, mode: 'shared' };
    expect(await request(name, other, (lock: unknown) => lock !== null)).toBe(true);
    const writer = request(name, () => 'writer');
    expect(await request(name, other, (lock: unknown) => lock !== null)).toBe(false);
    reader.release();
    expect(await writer).toBe('writer');
  });

  it('an aborted signal: the request rejects with its reason', async () => {
    const called: unknown[] = [];
    for (const reason of ['my dog ate it', undefined]) {
      const controller = new AbortController();
      controller.abort(reason);
      const outcome = request(name, { signal: controller.signal }, (lock: unknown) => called.push(lock));
      await expect(outcome).rejects.toBe(controller.signal.reason);
    }
    expect(called).toEqual([]);
  });

  it('an abort right after the request: the callback is never called, the next request is served', async () => {
    const called: string[] = [];
    const controller = new AbortController();
    const first = request(name, { signal: controller.signal }, () => called.push('first'));
    const next = request(name, () => called.push('next'));
    controller.abort('changed my mind');
    await expect(first).rejects.toBe('changed my mind');
    await next;
    expect(called).toEqual(['next']);
  });

  it('an abort while waiting: rejects', async () => {
    const held = await hold(locks, name);
    const controller = new AbortController();
    const waiting = request(name, { signal: controller.signal }, () => 'never');
    expect(await modes(name)).toEqual({ held: ['exclusive'], pending: ['exclusive'] });
    controller.abort();
    expect(await failure(waiting)).toBe('AbortError');
    held.release();
    await held.requested;
  });

  it('an abort after the grant is ignored', async () => {
    const controller = new AbortController();
    const held = await hold(locks, name, { signal: controller.signal });
    controller.abort();
    held.release('resolved ok');
    expect(await held.requested).toBe('resolved ok');
  });

  it('steal: the holder rejects, the request that steals enters next, the waiters stay behind it', async () => {
    const stolen = await hold(locks, name);
    const outcome = failure(stolen.requested);
    const order: string[] = [];
    const waiting = request(name, () => void order.push('waiter'));
    await request(name, { steal: true }, () => void order.push('stealing'));
    await waiting;
    expect(await outcome).toBe('AbortError');
    expect(order).toEqual(['stealing', 'waiter']);
  });

  it('steal: ends the holds of all readers, and a hold that was stolen itself', async () => {
    const readers = [
      await hold(locks, name, { mode: 'shared' }),
      await hold(locks, name, { mode: 'shared' }),
    ];
    const outcomes = readers.map(({ requested }) => failure(requested));
    const stealing = await hold(locks, name, { steal: true });
    expect(await Promise.all(outcomes)).toEqual(['AbortError', 'AbortError']);
    const second = failure(stealing.requested);
    expect(await request(name, { steal: true }, () => 'last')).toBe('last');
    expect(await second).toBe('AbortError');
    expect(await request(name, { steal: true }, () => 'free')).toBe('free');
  });

  it('query: one client has one id, and entries have name, mode and clientId', async () => {
    const held = [await hold(locks, name), await hold(locks, `${name} too`, { mode: 'shared' })];
    const waiting = request(name, () => 'waited');
    const { held: all, pending } = await locks.query();
    const entries = [...all, ...pending].filter((one) => one.name.startsWith(name));
    expect(entries.map(({ mode }) => mode).toSorted()).toEqual(['exclusive', 'exclusive', 'shared']);
    expect(new Set(entries.map(({ clientId }) => clientId)).size).toBe(1);
    expect(Object.keys(entries[0] ?? {}).toSorted()).toEqual(['clientId', 'mode', 'name']);
    for (const { release, requested } of held) {
      release();
      await requested;
    }
    await waiting;
  });
});

// On a Node without locks of its own there is nothing to compare with.
if (platform !== undefined) {
  describe('many requests in one turn', () => {
    // Callbacks outlast the turn of their request: Node lets a release overtake what the same turn requested before it.
    it.each(Array.from({ length: 20 }, (_, seed) => seed + 1))('are served alike (seed %i)', async (seed) => {
      const program = randomProgram(seed, 12);
      const settled = () => delay(3);
      await using fresh = webLocks(memoryBackend());
      const expected = await run(platform, program, settled);
      expect(await run(fresh, program, settled)).toEqual(expected);
    });
  });
}
