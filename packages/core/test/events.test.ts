import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { type LockEvent, type LockTrace, onLockEvent } from '../src/index.ts';
import { listenTo, locksOn, pass, rejectionOf, useFakeClock } from './fixture.ts';
import { scriptedBackend } from './scripted-backend.ts';

test('a listener gets the messages of its channel until it is stopped', async () => {
  const locks = locksOn(scriptedBackend());
  const heard: string[] = [];
  const stop = onLockEvent('locks:acquired', ({ name }) => heard.push(name));
  await locks.lock('a').acquire();
  stop();
  stop();
  await locks.lock('b').acquire();
  expect(heard).toEqual(['a']);
  await locks.close();
});

test('every event says the label and the mode of its acquisition', async () => {
  const locks = locksOn(scriptedBackend({ abandon: () => Promise.reject(new Error('away')) }), {
    label: 'me',
  });
  const heard: LockEvent[] = [];
  const names = [
    'locks:acquired',
    'locks:released',
    'locks:lost',
    'locks:gave-up',
    'locks:abandon-failed',
  ] as const;
  const stops = names.map((name) => onLockEvent(name, (event) => heard.push(event)));
  await (await locks.lock('a').acquire()).release();
  await locks.lock('a').acquire();
  await locks.close();
  for (const stop of stops) stop();
  expect(heard.length).toBeGreaterThan(3);
  for (const { label, mode } of heard)
    expect({ label, mode }).toEqual({ label: 'me', mode: { kind: 'exclusive' } });
});

test('locks:gave-up names the holders, and locks:contended can ask for them', async () => {
  const holder = { acquisitionId: 'other', mode: { kind: 'exclusive' as const }, label: 'other host' };
  const locks = locksOn(
    scriptedBackend({
      attempt: () => Promise.resolve({ status: 'contended' }),
      inspect: (resource) => Promise.resolve({ name: resource, holders: [holder], waiters: [] }),
    }),
  );
  const asked: Promise<unknown>[] = [];
  const published: unknown[] = [];
  const stops = [
    onLockEvent('locks:contended', ({ lookUpHolders }) => asked.push(lookUpHolders())),
    onLockEvent('locks:gave-up', ({ holders }) => published.push(holders)),
  ];
  await expect(locks.lock('a').acquire({ waitMs: 200 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  for (const stop of stops) stop();
  expect(await Promise.all(asked)).toEqual([[holder]]);
  expect(published).toEqual([[holder]]);
});

test('locks:contended says whether the acquire waits, and the end of the acquire which one it was', async () => {
  const contended = listenTo('locks:contended');
  const gaveUp = listenTo('locks:gave-up');
  const locks = locksOn(scriptedBackend({ attempt: () => Promise.resolve({ status: 'contended' }) }));
  expect(await locks.lock('a').tryAcquire()).toBeUndefined();
  await expect(locks.lock('a').acquire({ waitMs: 30 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  expect(contended.map(({ waits }) => waits)).toEqual([false, true]);
  expect(gaveUp.map(({ contendedAs }) => contendedAs)).toEqual([contended[1]?.acquisitionId]);
});

test('locks:renewed and locks:released say how much of the lease was left, and of how much', async () => {
  useFakeClock();
  const [renewed, released] = [listenTo('locks:renewed'), listenTo('locks:released')];
  const lease = await locksOn(scriptedBackend(), { ttlMs: 30_000 }).lock('a').acquire();
  await pass(10_000);
  expect(renewed).toMatchObject([{ name: 'a', remainingMs: 20_000 - 302, validForMs: 30_000 }]);
  await lease.renew(3_000);
  await pass(1_000);
  expect(renewed.slice(1)).toMatchObject([
    { remainingMs: 3_000 - 32, validForMs: 3_000 },
    { remainingMs: 2_000 - 32, validForMs: 3_000 },
  ]);
  await lease.release();
  expect(released).toMatchObject([{ heldMs: 11_000, tookMs: 0, remainingMs: 3_000 - 32, validForMs: 3_000 }]);
});

test('a release without an answer is published once, whoever made it', async () => {
  const failed = listenTo('locks:release-failed');
  const locks = locksOn(
    scriptedBackend({ release: () => Promise.reject(new Error('away')), isRetryable: () => false }),
  );
  const failures = { code: 'LOCK_BACKEND' };
  await expect((await locks.lock('a').acquire()).release()).rejects.toMatchObject(failures);
  await (await locks.lock('b').acquire())[Symbol.asyncDispose]();
  await locks.lock('c').run(() => {});
  expect(failed.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
});

test('acquire, run and release are traced, and run inside what a subscriber sets', async () => {
  const entered: string[] = [];
  const ended: unknown[] = [];
  const storage = new AsyncLocalStorage<string>();
  const stops = (['acquire', 'run', 'release'] as const).map((name) => {
    const tracing = tracingChannel<unknown, LockTrace>(`locks:${name}`);
    const start = (message: unknown): void => {
      entered.push(`${storage.getStore()} > ${name}`);
      (message as LockTrace).enter = (call) => storage.run(name, call);
    };
    const asyncEnd = (message: unknown): void => void ended.push([name, (message as LockTrace).error]);
    tracing.start.subscribe(start);
    tracing.asyncEnd.subscribe(asyncEnd);
    return () => {
      tracing.start.unsubscribe(start);
      tracing.asyncEnd.unsubscribe(asyncEnd);
    };
  });
  const locks = locksOn(scriptedBackend());
  const work = (): string => `${storage.getStore()} > work`;
  expect(await storage.run('caller', () => locks.lock('a').run(work))).toBe('run > work');
  for (const stop of stops) stop();
  await locks.lock('a').run(() => {});
  expect(entered).toEqual(['caller > run', 'run > acquire', 'run > release']);
  expect(ended).toEqual([
    ['acquire', undefined],
    ['release', undefined],
    ['run', undefined],
  ]);
});

test('an abort between a traced grant and its caller leaves nothing held', async () => {
  const tracing = tracingChannel<unknown, LockTrace>('locks:acquire');
  const controller = new AbortController();
  const abort = (): void => controller.abort(new Error('stopped'));
  tracing.asyncEnd.subscribe(abort);
  const backend = scriptedBackend();
  const acquiring = locksOn(backend).lock('a').acquire({ signal: controller.signal });
  await expect(acquiring).rejects.toThrow('stopped');
  tracing.asyncEnd.unsubscribe(abort);
  expect(backend.of('release')).toHaveLength(1);
});

test('bad options are refused as such, also while somebody traces', async () => {
  const tracing = tracingChannel<unknown, LockTrace>('locks:acquire');
  const waits: unknown[] = [];
  const start = (message: unknown): void => void waits.push((message as LockTrace).waits);
  tracing.start.subscribe(start);
  onTestFinished(() => tracing.start.unsubscribe(start));
  const lock = locksOn(scriptedBackend()).lock('a');
  for (const waitMs of [Symbol('soon'), Object.create(null), null, '9'] as never[]) {
    expect(await rejectionOf(lock.acquire({ waitMs }))).toBe('LOCK_INVALID_ARGUMENT');
    expect(await rejectionOf(lock.run(() => {}, { waitMs }))).toBe('LOCK_INVALID_ARGUMENT');
  }
  expect(waits).toEqual(Array.from({ length: 8 }, () => false));
});
