import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { scriptedBackend } from './scripted-backend.ts';

const KEY = Symbol.for('@locks/core/context@2');
const shared = globalThis as { [KEY]?: { readonly storage?: unknown } };
let before: (typeof shared)[typeof KEY];
let runs: number;

/** A copy of core in a process of this version of Node, in which nothing has run yet. */
async function freshLocks(node: string) {
  vi.stubGlobal('process', Object.create(process, { versions: { value: { ...process.versions, node } } }));
  vi.resetModules();
  const { Locks } = await import('../src/create-locks.ts');
  return new Locks(scriptedBackend());
}

beforeEach(() => {
  before = shared[KEY];
  delete shared[KEY];
  runs = 0;
  const { run } = AsyncLocalStorage.prototype;
  vi.spyOn(AsyncLocalStorage.prototype, 'run').mockImplementation(function (
    this: unknown,
    ...args: unknown[]
  ) {
    // The test runner has storages of its own.
    if (this === shared[KEY]?.storage) runs += 1;
    return Reflect.apply(run, this, args) as unknown;
  } as typeof run);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  // A file that runs later in this process must not get the copy of core whose context is gone.
  vi.resetModules();
  if (before === undefined) delete shared[KEY];
  else shared[KEY] = before;
});

test('acquire and tryAcquire touch no asynchronous context, and run enters one', async () => {
  const locks = await freshLocks('24.0.0');
  await (await locks.lock('a').acquire()).release();
  await (await locks.lock('a').tryAcquire())?.release();
  expect(runs).toBe(0);
  await locks.lock('a').run(() => 'done');
  expect(runs).toBe(1);
});

test('before Node 24 run touches no asynchronous context until a reentrant one has run', async () => {
  const locks = await freshLocks('22.13.0');
  await locks.lock('a').run(() => locks.lock('b').run(() => locks.detached(() => 'done')));
  expect(runs).toBe(0);
  await locks.lock('c', { reentrant: true }).run(() => 'done');
  const reentrant = runs;
  expect(reentrant).toBeGreaterThan(0);
  await locks.lock('a').run(() => 'done');
  expect(runs).toBeGreaterThan(reentrant);
});
