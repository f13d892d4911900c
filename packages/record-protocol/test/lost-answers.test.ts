import type { AcquireRequest, Call } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { createRecordBackend } from '../src/create-record-backend.ts';
import { Broken, LocalStore } from './local-store.ts';

const call: Call = { now: () => performance.now(), deadline: Infinity };
let requested = 0;

function request(
  resource: string,
  kind: 'exclusive' | 'shared' = 'exclusive',
  ttlMs = 5_000,
): AcquireRequest {
  requested += 1;
  return { resource, acquisitionId: `id-${requested}`, mode: { kind }, label: undefined, ttlMs };
}

/** Something that happens once. */
class Happening {
  resolve = (): void => {};
  readonly promise = new Promise<void>((resolve) => {
    this.resolve = resolve;
  });
}

test('a step that came while the answer to a write was lost is decided for itself', async () => {
  const store = new LocalStore();
  const backend = createRecordBackend(store);
  await backend.attempt(request('a', 'shared'), false, call);
  const [sent, answer] = [new Happening(), new Happening()];
  store.around = async (_, execute) => {
    execute();
    sent.resolve();
    await answer.promise;
    store.around = async (__, later) => later();
    throw new Broken();
  };
  const second = backend.attempt(request('a', 'shared'), false, call);
  await sent.promise;
  const writer = backend.attempt(request('a'), false, call);
  answer.resolve();
  expect(await second).toMatchObject({ status: 'granted' });
  expect(await writer).toEqual({ status: 'contended' });
});

test('a hold whose grant got no answer counts from the sending of that write, however late it is found', async () => {
  const store = new LocalStore();
  const backend = createRecordBackend(store);
  const wanted = request('a', 'exclusive', 1_000);
  let sentAt = 0;
  store.around = async (what, execute) => {
    // The read before the first write is answered.
    if (sentAt === 0 && what.startsWith('read')) return execute();
    sentAt = performance.now();
    execute();
    throw new Broken();
  };
  await expect(backend.attempt(wanted, false, call)).rejects.toBeInstanceOf(Broken);
  store.around = async (_, execute) => execute();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(`it was ${attempt.status}`);
  const { countedFrom, validForMs = wanted.ttlMs } = attempt.grant;
  // Others end the hold a ttl after they have seen it, which may be at once.
  expect(countedFrom + validForMs).toBeLessThanOrEqual(sentAt + wanted.ttlMs + 1);
  // What has passed takes its share along of the margin for a slow clock, which core takes from the rest only.
  expect(countedFrom + validForMs).toBeLessThanOrEqual(sentAt + wanted.ttlMs - 300 / 99 + 1);
  expect(countedFrom + validForMs).toBeGreaterThan(sentAt + wanted.ttlMs - 100);
});

test('a release that the client repeats by itself is one, although others wrote meanwhile, and no loss', async () => {
  const store = new LocalStore();
  const [backend, other] = [createRecordBackend(store), createRecordBackend(store)];
  for (const writesBetween of [0, 1, 3]) {
    const attempt = await backend.attempt(request('a'), false, call);
    if (attempt.status !== 'granted') throw new Error(`it was ${attempt.status}`);
    const stranger = request('a', 'shared');
    store.around = async (_, execute) => {
      execute();
      store.around = async (__, later) => later();
      for (let writes = 0; writes < writesBetween; writes += 1)
        await (writes % 2 === 0 ? other.attempt(stranger, false, call) : other.abandon(stranger, call));
      // The second sending.
      return execute();
    };
    expect(await backend.release(attempt.grant, call)).toBe('released');
    await other.abandon(stranger, call);
  }
});

test('a lock that was taken away is not held, whatever this process remembers', async () => {
  const store = new LocalStore();
  const [backend, other] = [createRecordBackend(store), createRecordBackend(store)];
  const attempt = await backend.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error(`it was ${attempt.status}`);
  await other.forceRelease?.('a', undefined, call);
  expect(await backend.release(attempt.grant, call)).toBe('not-held');
});

test('where too many have written since, nobody can say whether a repeated release was one', async () => {
  const store = new LocalStore();
  const [backend, other] = [createRecordBackend(store), createRecordBackend(store)];
  const attempt = await backend.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error(`it was ${attempt.status}`);
  await other.forceRelease?.('a', undefined, call);
  for (let writes = 0; writes < 10; writes += 1) {
    const stranger = request('a');
    await other.attempt(stranger, false, call);
    await other.abandon(stranger, call);
  }
  expect(await backend.release(attempt.grant, call)).toBe('unknown');
});
