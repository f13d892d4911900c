import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import type { Holder, ResourceState } from '../src/backend/types.ts';
import { locksOn, rejectionOf, settled } from './fixture.ts';
import { capabilities, contended, noAnswer, scriptedBackend } from './scripted-backend.ts';

const holder: Holder = {
  acquisitionId: 'one',
  mode: { kind: 'exclusive' },
  label: 'web-1:77',
  fencingToken: 2n ** 60n,
  heldForMs: 5,
};
const asJson = { ...holder, fencingToken: '1152921504606846976' };

function serving() {
  return scriptedBackend({
    capabilities: { ...capabilities, modes: ['exclusive', 'permit'], features: ['list', 'force-release'] },
    resize: () => Promise.resolve({ status: 'set' }),
    inspect: (resource) =>
      Promise.resolve({
        name: resource,
        holders: resource === 'free' ? [] : [Object.freeze(holder)],
        waiters: [{ acquisitionId: 'two', mode: { kind: 'exclusive' } }],
      }),
    list: async function* () {
      yield { name: 'a', holders: [holder], waiters: [] };
    },
    forceRelease: () => Promise.resolve([holder]),
  });
}

test('the answers for operators can be converted to JSON: tokens are decimal strings there, and bigints in code', async () => {
  const locks = locksOn(serving());
  const state = await locks.inspect('a');
  expect(state.holders).toEqual([holder]);
  expect(JSON.parse(JSON.stringify(state))).toEqual({
    name: 'a',
    holders: [asJson],
    waiters: [{ acquisitionId: 'two', mode: { kind: 'exclusive' } }],
  });
  expect(JSON.parse(JSON.stringify(await locks.lock('a').inspect()))).toMatchObject({ holders: [asJson] });
  for await (const one of locks.list())
    expect(JSON.parse(JSON.stringify(one))).toMatchObject({ holders: [asJson] });
  const ended = await locks.forceRelease('a');
  expect(ended).toEqual([holder]);
  expect(JSON.parse(JSON.stringify(ended))).toEqual([asJson]);
});

test('the times of holders and waiters are whole milliseconds', async () => {
  const state = {
    holders: [{ ...holder, heldForMs: 96.0869140625, expiresInMs: 29_903.9 }],
    waiters: [{ acquisitionId: 'two', mode: { kind: 'exclusive' as const }, waitingForMs: 0.5 }],
  };
  const locks = locksOn({
    ...serving(),
    inspect: (resource) => Promise.resolve({ name: resource, ...state }),
    forceRelease: () => Promise.resolve(state.holders),
  });
  const ended = [{ ...holder, heldForMs: 96, expiresInMs: 29_904 }];
  expect(await locks.inspect('a')).toMatchObject({ holders: ended, waiters: [{ waitingForMs: 0 }] });
  expect(await locks.forceRelease('a')).toMatchObject(ended);
  expect(JSON.parse(JSON.stringify(await locks.inspect('a')))).toMatchObject({
    holders: [{ heldForMs: 96 }],
  });
});

test('a holder without a token has none as JSON', async () => {
  const { fencingToken: _, ...bare } = holder;
  const locks = locksOn({
    ...serving(),
    inspect: (resource) => Promise.resolve({ name: resource, holders: [bare], waiters: [] }),
  });
  expect(JSON.parse(JSON.stringify(await locks.inspect('a')))).toEqual({
    name: 'a',
    holders: [bare],
    waiters: [],
  });
});

test('console.log of a lock says its name and mode, of a manager its backend and how much is held', async () => {
  const locks = locksOn(serving());
  expect(inspect(locks.lock('sku:42'))).toBe("ResourceLock { name: 'sku:42', mode: { kind: 'exclusive' } }");
  expect(inspect(locks.semaphore('slots', 5), { breakLength: Infinity })).toBe(
    "PermitLock { name: 'slots', mode: { kind: 'permit', limit: 5, weight: 1 } }",
  );
  expect(inspect(locks)).toBe("{ backend: 'scripted', held: 0, closed: false }");
  expect(inspect(locks.all([locks.lock('a')]))).toMatch(
    /^MultiResourceLock \{\s+locks: \[ ResourceLock \{ name: 'a'/,
  );
  const lease = await locks.lock('sku:42').acquire();
  expect(inspect(locks)).toBe("{ backend: 'scripted', held: 1, closed: false }");
  await lease.release();
  await locks.close();
  expect(inspect(locks)).toBe("{ backend: 'scripted', held: 0, closed: true }");
});

test('console.log and JSON of a lease say its name, mode, token and the time that is left', async () => {
  const locks = locksOn(serving(), { ttlMs: 30_000 });
  const lease = await locks.lock('sku:42').acquire();
  const { acquisitionId, fencingToken } = lease;
  const validForMs = expect.any(Number) as number;
  const said = { name: 'sku:42', mode: { kind: 'exclusive' }, acquisitionId, validForMs, released: false };
  expect(JSON.parse(JSON.stringify(lease))).toEqual({ ...said, fencingToken: String(fencingToken) });
  expect(inspect(lease, { breakLength: Number.POSITIVE_INFINITY })).toMatch(
    new RegExp(
      `^\\{ name: 'sku:42', .*fencingToken: ${fencingToken}n, validForMs: 29\\d\\d\\d, released: false`,
    ),
  );
  const set = await locks.all([locks.lock('b')]).acquire();
  expect(inspect(set)).toMatch(/^MultiLeaseHandle \{\s+leases: \[\s*\{\s+name: 'b'/);
  await lease.release();
  expect(JSON.parse(JSON.stringify(lease))).toMatchObject({ validForMs: 0, released: true });
  await locks.close();
  expect(JSON.parse(JSON.stringify(set.leases[0]))).toMatchObject({ validForMs: 0, lost: 'closed' });
});

test('isLocked says whether anybody holds', async () => {
  const locks = locksOn(serving());
  expect(await locks.isLocked('a')).toBe(true);
  expect(await locks.isLocked('free')).toBe(false);
  expect(await rejectionOf(locks.isLocked(''))).toBe('LOCK_INVALID_ARGUMENT');
});

test('ping asks the backend, or inspects a resource where it has no ping, and says how long it took', async () => {
  const asked: string[] = [];
  const backend = serving();
  const pinging = locksOn({ ...backend, ping: async () => void asked.push('ping') });
  expect((await pinging.ping()).tookMs).toBeGreaterThanOrEqual(0);
  const without = locksOn({
    ...backend,
    inspect: (resource) => {
      asked.push('inspect');
      return Promise.resolve({ name: resource, holders: [], waiters: [] });
    },
  });
  await without.ping();
  expect(asked).toEqual(['ping', 'inspect']);
});

test('ping rejects with LOCK_BACKEND when the store fails, or does not answer within answerMs', async () => {
  const failing = locksOn({ ...serving(), ping: () => Promise.reject(new Error('away')) });
  await expect(failing.ping()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringMatching(/away/) as string,
  });
  const silent = locksOn({ ...serving(), ping: () => noAnswer<void>() });
  await expect(silent.ping({ answerMs: 20 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  expect(await rejectionOf(silent.ping({ answerMs: 0 }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(silent.ping({ timeoutMs: 5 } as never))).toBe('LOCK_INVALID_ARGUMENT');
  await expect(silent.ping({ waitMs: 5 } as never)).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('createLocks(backend, { answerMs })'),
  });
  const impatient = locksOn(
    { ...serving(), ping: () => noAnswer<void>(), inspect: noAnswer },
    { answerMs: 20 },
  );
  for (const asked of [impatient.ping(), impatient.inspect('a'), impatient.isLocked('a')])
    await expect(asked).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
});

test('the times of holders and waiters are whole milliseconds: none is older, or ends earlier, than it does', async () => {
  const state = {
    name: 'a',
    holders: [{ ...holder, heldForMs: 96.087, expiresInMs: 903.913 }],
    waiters: [{ acquisitionId: 'two', mode: holder.mode, waitingForMs: 7.9 }],
  };
  const locks = locksOn({ ...serving(), inspect: () => Promise.resolve(state) });
  const { holders, waiters } = JSON.parse(JSON.stringify(await locks.inspect('a'))) as ResourceState;
  expect(holders).toMatchObject([{ heldForMs: 96, expiresInMs: 904 }]);
  expect(waiters).toMatchObject([{ waitingForMs: 7 }]);
});

test('a waiter that gave up is shown no longer, while its abandon has no answer and in an answer that was asked for before', async () => {
  const waiting = new Set<string>();
  let answerAbandon = (): void => {};
  let answerInspect = (): void => {};
  const seen = (resource: string): ResourceState => ({
    name: resource,
    holders: [holder],
    waiters: [...waiting].map((acquisitionId) => ({ acquisitionId, mode: holder.mode })),
  });
  const locks = locksOn(
    scriptedBackend({
      capabilities: { ...capabilities, features: ['list', 'waiters'] },
      attempt: ({ acquisitionId }) => {
        waiting.add(acquisitionId);
        return Promise.resolve(contended);
      },
      awaitTurn: noAnswer,
      abandon: ({ acquisitionId }) =>
        new Promise((resolve) => {
          if (waiting.size === 1) resolve();
          answerAbandon = () => {
            waiting.delete(acquisitionId);
            resolve();
          };
        }),
      inspect: (resource) => {
        const state = seen(resource);
        return new Promise((resolve) => (answerInspect = () => resolve(state)));
      },
      list: async function* () {
        yield seen('a');
      },
    }),
  );
  const end = new AbortController();
  const gaveUp = locks.lock('a').acquire({ signal: end.signal, waitMs: 60_000 });
  const stays = locks.lock('a').acquire({ waitMs: 60_000 });
  await settled();
  end.abort(new Error('enough'));
  await expect(gaveUp).rejects.toThrow('enough');
  const before = locks.inspect('a');
  await settled();
  for await (const state of locks.list()) expect(state.waiters).toHaveLength(1);
  answerAbandon();
  await settled();
  answerInspect();
  expect((await before).waiters).toHaveLength(1);
  const closed = rejectionOf(stays);
  await locks.close();
  expect(await closed).toBe('LOCK_CLOSED');
});
