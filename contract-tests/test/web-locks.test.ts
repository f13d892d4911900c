import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Harness } from '@locks/core/conformance';
import { machineNow } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import type { LockManagerSnapshot } from '@locks/web-locks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClientSetup } from '../src/web-locks/commands.ts';
import { type ClientProcess, startClient } from '../src/web-locks/start-client.ts';

/** The default ttl of the package, and the additional time that stores may take on a busy machine. */
const TTL_MS = 5_000;
const SLACK_MS = 4_000;

/** Harnesses of the conformance suite. */
const STORES = process.env['LOCKS_WEB_LOCKS_STORES']?.split(',') ?? [
  'sqlite',
  'redis-ioredis',
  'postgres-lease',
];

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'locks-web-'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Entries of one name as `mode client`, the client by its place in `ids`. */
function shown({ held, pending }: LockManagerSnapshot, name: string, ids: readonly string[]) {
  const list = (all: LockManagerSnapshot['held']): string[] =>
    all.filter((one) => one.name === name).map(({ mode, clientId }) => `${mode} ${ids.indexOf(clientId)}`);
  return { held: list(held).toSorted(), pending: list(pending) };
}

describe.concurrent.each(STORES)('web locks of several processes on %s', { timeout: 30_000 }, (kind) => {
  let setup: ClientSetup;
  let teardown: (() => Promise<void>) | undefined;
  let clients: ClientProcess[];
  let ids: string[];
  beforeAll(async () => {
    const { default: harness } = (await import(`../src/harnesses/${kind}.ts`)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    setup = { harness: harness.module, env: started?.env ?? {} };
    clients = await Promise.all([1, 2, 3].map(() => startClient(setup)));
    ids = await Promise.all(clients.map(({ call }) => call.clientId()));
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.kill()));
    await teardown?.();
  });
  const client = (index: number) => (clients[index] as ClientProcess).call;
  /** A process that the test may kill. */
  const another = (ttlMs?: number) =>
    startClient({ ...setup, ...(ttlMs !== undefined && { options: { ttlMs } }) });

  it('each has an id of its own', () => {
    expect(new Set(ids).size).toBe(3);
  });

  it.concurrent('exclude each other', async () => {
    const file = join(folder, `${kind}-counter`);
    await writeFile(file, '0');
    await Promise.all(clients.map((client) => client.call.count('counter', file, 20)));
    expect(await readFile(file, 'utf8')).toBe('60');
  });

  it.concurrent('first come first served; every process sees all that is held and waits', async () => {
    const name = 'in order';
    await client(0).request('order', name);
    await client(0).granted('order');
    for (const index of [2, 1, 0]) {
      await client(index).request('order waiter', name);
      // This answer comes after the answers to the earlier requests.
      await client(index).query();
    }
    const expected = { held: ['exclusive 0'], pending: ['exclusive 2', 'exclusive 1', 'exclusive 0'] };
    for (const index of [0, 1, 2]) expect(shown(await client(index).query(), name, ids)).toEqual(expected);
    await client(0).release('order', 'the result');
    expect(await client(0).outcome('order')).toMatchObject({ value: 'the result' });
    expect(shown(await client(0).query(), name, ids)).toEqual({
      held: ['exclusive 2'],
      pending: ['exclusive 1', 'exclusive 0'],
    });
    const entered: number[] = [];
    for (const index of [2, 1, 0]) {
      entered.push((await client(index).granted('order waiter')).at);
      await client(index).release('order waiter');
      await client(index).outcome('order waiter');
    }
    expect(entered).toEqual(entered.toSorted((one, other) => one - other));
    expect(shown(await client(1).query(), name, ids)).toEqual({ held: [], pending: [] });
  });

  it.concurrent('readers share; a waiting writer blocks the readers behind it', async () => {
    const name = 'readers and writer';
    for (const index of [0, 1]) {
      await client(index).request('reader', name, { mode: 'shared' });
      expect(await client(index).granted('reader')).toMatchObject({ mode: 'shared' });
    }
    await client(2).request('writer', name);
    await client(2).query();
    await client(0).request('late', name, { mode: 'shared' });
    await client(1).request('available', name, { mode: 'shared', ifAvailable: true });
    expect(await client(1).granted('available')).toMatchObject({ mode: null });
    expect(shown(await client(0).query(), name, ids)).toEqual({
      held: ['shared 0', 'shared 1'],
      pending: ['exclusive 2', 'shared 0'],
    });
    for (const index of [0, 1]) await client(index).release('reader');
    const writer = await client(2).granted('writer');
    await client(2).release('writer');
    expect((await client(0).granted('late')).at).toBeGreaterThan(writer.at);
    await client(0).release('late');
  });

  it.concurrent('ifAvailable: null while another process holds', async () => {
    await client(0).request('held', 'available?');
    await client(0).granted('held');
    await client(1).request('no', 'available?', { ifAvailable: true });
    expect(await client(1).outcome('no')).toMatchObject({ value: 'not available' });
    await client(0).release('held');
    await client(0).outcome('held');
    await client(1).request('yes', 'available?', { ifAvailable: true });
    expect(await client(1).granted('yes')).toMatchObject({ mode: 'exclusive' });
    await client(1).release('yes');
  });

  it.concurrent('steal: the former holder is notified, and waiters stay in order behind the new holder', async () => {
    const name = 'stolen';
    for (const [index, key] of [
      [0, 'former'],
      [1, 'waiter'],
      [0, 'second waiter'],
    ] as const) {
      await client(index).request(key, name);
      await client(index).query();
    }
    await client(2).request('steal', name, { steal: true });
    const stolen = await client(2).granted('steal');
    expect(shown(await client(1).query(), name, ids)).toEqual({
      held: ['exclusive 2'],
      pending: ['exclusive 1', 'exclusive 0'],
    });
    const former = await client(0).outcome('former');
    expect(former.error?.name).toBe('AbortError');
    // The next renewal reports the loss at the latest.
    expect(former.at - stolen.at).toBeLessThan(TTL_MS / 3 + SLACK_MS);
    // A later release of the former holder ends no other hold.
    await client(0).release('former');
    expect(shown(await client(0).query(), name, ids).held).toEqual(['exclusive 2']);
    await client(2).release('steal');
    const first = await client(1).granted('waiter');
    await client(1).release('waiter');
    expect((await client(0).granted('second waiter')).at).toBeGreaterThan(first.at);
    await client(0).release('second waiter');
  });

  it.concurrent('an abort right after the request never calls the callback, and leaves nothing', async () => {
    const aborted = await client(0).abortAtOnce('aborted');
    expect(aborted).toMatchObject({ error: { name: 'thrown', message: 'aborted' }, called: false });
    await waitUntil(async () => shown(await client(1).query(), 'aborted', ids).held.length === 0, {
      what: 'the aborted request to be gone',
    });
    await client(1).request('after', 'aborted');
    await client(1).granted('after');
    await client(1).release('after');
  });

  it.concurrent('an aborted waiter is passed over', async () => {
    await client(0).request('in front', 'abort');
    await client(0).granted('in front');
    await client(1).request('aborted', 'abort');
    await client(1).query();
    await client(2).request('behind', 'abort');
    await client(2).query();
    await client(1).abort('aborted');
    expect(await client(1).outcome('aborted')).toMatchObject({ error: { message: 'aborted' } });
    expect(shown(await client(1).query(), 'abort', ids).pending).toEqual(['exclusive 2']);
    await client(0).release('in front');
    await client(2).granted('behind');
    await client(2).release('behind');
  });

  it.concurrent('any string is a name, and different strings are different names', async () => {
    const names = [
      '',
      '\0',
      '\uD800',
      '\uDFFF',
      '\uFFFD',
      '%uD800',
      'é',
      'e\u0301',
      ' ',
      '{a}',
      'x'.repeat(3_000),
    ];
    await Promise.all(names.map((name, index) => client(0).request(`odd ${index}`, name)));
    await Promise.all(names.map((_, index) => client(0).granted(`odd ${index}`)));
    const { held } = await client(1).query();
    for (const name of names.slice(0, -1)) {
      expect(held.filter((one) => one.name === name)).toHaveLength(1);
    }
    expect(held.filter((one) => /^x+…$/.test(one.name))).toHaveLength(1);
    for (const [index, name] of names.entries()) {
      await client(1).request(`odd ${index}`, name, { ifAvailable: true });
      expect(await client(1).granted(`odd ${index}`)).toMatchObject({ mode: null });
      await client(0).release(`odd ${index}`);
    }
  });

  it.concurrent('the lock of a killed process frees itself within a few seconds', async () => {
    const victim = await another();
    await victim.call.request('killed', 'killed');
    await victim.call.granted('killed');
    await client(0).request('heir', 'killed');
    await client(0).query();
    const killedAt = machineNow();
    await victim.kill();
    const { at } = await client(0).granted('heir');
    expect(at - killedAt).toBeLessThan(TTL_MS + SLACK_MS);
    await client(0).release('heir');
  });

  it.concurrent('a killed waiter is passed over', async () => {
    await client(0).request('holds', 'killed waiter');
    await client(0).granted('holds');
    const victim = await another();
    await victim.call.request('waits', 'killed waiter');
    await victim.call.query();
    await client(1).request('behind', 'killed waiter');
    await client(1).query();
    await victim.kill();
    await client(0).release('holds');
    const { at } = await client(0).outcome('holds');
    expect((await client(1).granted('behind')).at - at).toBeLessThan(TTL_MS + SLACK_MS);
    await client(1).release('behind');
  });

  it.concurrent('a process that stood still for longer than its ttl learns that it lost its lock', async () => {
    await using sleeper = await another(1_000);
    await sleeper.call.request('frozen', 'frozen');
    await sleeper.call.granted('frozen');
    sleeper.freeze();
    await client(0).request('awake', 'frozen');
    await client(0).granted('awake');
    sleeper.thaw();
    expect((await sleeper.call.outcome('frozen')).error?.name).toBe('AbortError');
    expect(shown(await client(0).query(), 'frozen', ids).held).toEqual(['exclusive 0']);
    await client(0).release('awake');
    expect(await client(0).outcome('awake')).not.toHaveProperty('error');
  });
});
