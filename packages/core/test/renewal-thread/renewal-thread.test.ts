import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import type { LockBackend } from '../../src/backend/types.ts';
import { Locks } from '../../src/create-locks.ts';
import type { Clock } from '../../src/lifetime/clock.ts';
import type { ManagerOptions } from '../../src/options.ts';
import { type RenewalThreadOptions, renewalThread } from '../../src/renewal-thread/index.ts';
import { codeOf, listenTo, rejectionOf } from '../fixture.ts';
import { capabilities, type ScriptedBackend, scriptedBackend } from '../scripted-backend.ts';
import { block } from './block.ts';

const module = (query = '') => new URL(`thread-backend.ts${query}`, import.meta.url);

function backendOf(script: Partial<LockBackend> = {}): ScriptedBackend {
  return scriptedBackend({ capabilities: { ...capabilities, renewal: 'any-client' }, ...script });
}

function open(
  query: string,
  backend = backendOf(),
  options: ManagerOptions & Partial<RenewalThreadOptions> = {},
  clock?: Clock,
): Locks {
  const { maxBlockedMs = 60_000, startTimeoutMs, ...others } = options;
  const thread = renewalThread(module(query), { maxBlockedMs, startTimeoutMs });
  const locks = new Locks(backend, { ttlMs: 600, renewalThread: thread, ...others }, clock);
  onTestFinished(() => locks.close());
  return locks;
}

describe('bad arguments', () => {
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a relative path', './locks-backend.mjs'],
    ['the name of a package', 'locks-backend'],
    ['another scheme', new URL('https://example.com/locks-backend.mjs')],
    ['code', 'data:text/javascript,export default 1'],
    ['a function', () => backendOf()],
  ])('are refused at once: %s as the module', (_what, value) => {
    expect(codeOf(() => renewalThread(value as URL, { maxBlockedMs: 1_000 }))).toBe('LOCK_INVALID_ARGUMENT');
  });

  it.each<[string, unknown]>([
    ['no options', undefined],
    ['no maxBlockedMs', {}],
    ['an endless maxBlockedMs', { maxBlockedMs: Number.POSITIVE_INFINITY }],
    ['a short maxBlockedMs', { maxBlockedMs: 99 }],
    ['a misspelt option', { maxBlockedMs: 1_000, startTimeout: 1 }],
    ['a short startTimeoutMs', { maxBlockedMs: 1_000, startTimeoutMs: 0 }],
  ])('are refused at once: %s', (_what, options) => {
    expect(codeOf(() => renewalThread(module(), options as never))).toBe('LOCK_INVALID_ARGUMENT');
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['the module', module()],
    ['options', { maxBlockedMs: 1_000 }],
  ])('are refused by createLocks(): %s', (_what, value) => {
    expect(codeOf(() => new Locks(backendOf(), { renewalThread: value as never }))).toBe(
      'LOCK_INVALID_ARGUMENT',
    );
  });

  test('a thread belongs to one manager', async () => {
    const thread = renewalThread(fileURLToPath(module()), { maxBlockedMs: 1_000 });
    const locks = new Locks(backendOf(), { renewalThread: thread });
    expect(codeOf(() => new Locks(backendOf(), { renewalThread: thread }))).toBe('LOCK_INVALID_ARGUMENT');
    await locks.close();
  });

  test.each([
    ['lease', 'own-client', /the client that took it/],
    ['session', 'own-client', /its session/],
  ] as const)('a backend is refused whose holds only their client renews (%s)', (tenure, renewal, reason) => {
    const backend = backendOf({ capabilities: { ...capabilities, tenure, renewal } });
    const thread = renewalThread(module(), { maxBlockedMs: 1_000 });
    expect(() => new Locks(backend, { renewalThread: thread })).toThrow(
      expect.objectContaining({ code: 'LOCK_UNSUPPORTED', message: expect.stringMatching(reason) }),
    );
  });
});

describe('the start', () => {
  it.each([
    ['is not there', '/missing.mjs', /cannot be loaded/],
    ['throws', '?throws', /thrown on purpose/],
    ['exports no function', '/../block.ts', /must be a function/],
    ['makes another backend', '?name=other', /makes the backend other/],
    ['makes no backend', '/../../fixture.ts', /must be a function/],
  ])('of a thread whose module %s rejects every acquire, and sends nothing', async (_what, query, says) => {
    const backend = backendOf();
    const url = query.startsWith('?')
      ? module(query)
      : new URL(`.${query.replace('/..', '')}`, import.meta.url);
    const thread = renewalThread(url, { maxBlockedMs: 60_000 });
    const locks = new Locks(backend, { renewalThread: thread });
    const refused = { code: 'LOCK_INVALID_ARGUMENT', message: expect.stringMatching(says) };
    await expect(locks.lock('a').acquire()).rejects.toMatchObject(refused);
    await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refused);
    await locks.close();
    expect(backend.sent).toEqual([]);
  });

  it('is awaited by the first acquire, whose limits hold meanwhile', async () => {
    const backend = backendOf();
    const locks = open('?startMs=700', backend);
    const abort = new AbortController();
    const aborted = locks.lock('a').acquire({ signal: abort.signal });
    const acquired = locks.lock('a').acquire();
    const late = locks.lock('a').acquire({ waitMs: 50 });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await expect(late).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringMatching(/not started/),
    });
    expect(backend.of('attempt')).toEqual([]);
    await acquired;
    expect(backend.of('attempt')).toHaveLength(1);
  });

  it('ends with the manager', async () => {
    const locks = open('?startMs=60000');
    const refused = rejectionOf(locks.lock('a').acquire());
    await locks.close();
    expect(await refused).toBe('LOCK_CLOSED');
  });

  it('has a time limit', async () => {
    const locks = open('?startMs=60000', backendOf(), { startTimeoutMs: 100 });
    expect(await rejectionOf(locks.lock('a').acquire())).toBe('LOCK_BACKEND');
    expect(await rejectionOf(locks.lock('a').acquire())).toBe('LOCK_BACKEND');
  });
});

describe('a lease that the thread renews', () => {
  it('is not renewed by the event loop, and is lost at once when the store says so', async () => {
    const backend = backendOf();
    const lease = await open('', backend).lock('a').acquire();
    await delay(1_500);
    expect(lease.validForMs).toBeGreaterThan(0);
    expect(backend.of('renew').length).toBeLessThanOrEqual(1);
    const doomed = await open('?lost').lock('a').acquire();
    block(400);
    expect(() => doomed.assertValid()).toThrow(expect.objectContaining({ reason: 'taken-over' }));
  });

  it('counts what the clock of the manager gains after its renewal, also once the gain is known', async () => {
    let gainedMs = 0;
    const clock = { now: () => performance.now() + gainedMs };
    const lease = await open('', backendOf(), { ttlMs: 3_000, maxBlockedMs: 1_000 }, clock)
      .lock('a')
      .acquire();
    await delay(1_100);
    const before = lease.validForMs;
    expect(before).toBeGreaterThan(2_000);
    gainedMs = 1_500;
    expect(lease.validForMs).toBeLessThanOrEqual(before - 1_500);
    // The heartbeat, every 100 ms, has found the gain.
    await delay(250);
    expect(lease.validForMs).toBeLessThanOrEqual(before - 1_500);
    // The next renewal, a third of the ttl after the last one, was sent after the gain.
    await delay(1_100);
    expect(lease.validForMs).toBeGreaterThan(1_500);
  });

  it('is renewed by the event loop, too, while the store does not answer the thread', async () => {
    const backend = backendOf();
    const lease = await open('?unknown', backend).lock('a').acquire();
    await delay(2_000);
    expect(lease.validForMs).toBeGreaterThan(0);
    expect(backend.of('renew').length).toBeGreaterThan(2);
    await lease.release();
  });

  it('is renewed by its ttl, also where the store keeps it for longer', async () => {
    const lease = await open('?keptMs=60000').lock('a').acquire();
    await delay(100);
    block(1_800);
    expect(lease.validForMs).toBeGreaterThan(0);
    expect(lease.validForMs).toBeLessThan(600);
  });

  it('is renewed for no longer than maxBlockedMs after the last heartbeat', async () => {
    const locks = open('', backendOf(), { ttlMs: 900, maxBlockedMs: 1_500 });
    const lease = await locks.lock('a').acquire();
    block(1_400);
    expect(lease.validForMs).toBeGreaterThan(0);
    await delay(300);
    block(3_000);
    expect(() => lease.assertValid()).toThrow(expect.objectContaining({ reason: 'expired' }));
  });

  it('ends unconfirmed, and is abandoned, where the store may still carry out a renewal of the thread', async () => {
    const backend = backendOf();
    const lease = await open('?unknown', backend).lock('a').acquire();
    block(1_000);
    expect(() => lease.assertValid()).toThrow(expect.objectContaining({ reason: 'unconfirmed' }));
    expect(backend.of('abandon')).toHaveLength(1);
  });

  it('counts for no more than its ttl after a longer renewal that one of the thread may overtake', async () => {
    const lease = await open('?unknown', backendOf(), { ttlMs: 1_500 }).lock('a').acquire();
    block(800);
    await lease.renew(10_000);
    expect(lease.validForMs).toBeLessThan(1_500);
    // It is repeated, and a repetition that is sent after the answer to the thread is no longer overtaken.
    await delay(2_000);
    expect(lease.validForMs).toBeGreaterThan(1_500);
  });

  it('is not renewed with its former ttl once a renewal with another one was asked for', async () => {
    const backend = backendOf();
    const lease = await open('', backend).lock('a').acquire();
    await lease.renew(10_000);
    await delay(1_000);
    expect(lease.validForMs).toBeGreaterThan(8_000);
    expect(backend.of('renew').map(({ ttlMs }) => ttlMs)).toEqual([10_000]);
  });

  it('is taken back from a thread that hangs', async () => {
    const stopped = listenTo('locks:renewal-thread-stopped');
    const lease = await open('?hangs', backendOf(), { ttlMs: 2_000 }).lock('a').acquire();
    await delay(700);
    await lease.renew(10_000);
    await delay(100);
    expect(lease.validForMs).toBeGreaterThan(0);
    await lease.renew(400);
    await delay(3_000);
    expect(stopped).toMatchObject([{ backend: 'scripted', error: { message: 'it hangs' } }]);
    expect(lease.validForMs).toBeGreaterThan(0);
  });
});

test('a process waits for a lease that is taken back, and for nothing after that', async () => {
  const script = fileURLToPath(new URL('renews-and-ends.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script], { timeout: 20_000 });
  expect(stdout).toBe('renewed');
});
