import { expect, test } from 'vitest';
import type { AcquireRequest, Call, LockBackend } from '../../src/backend/types.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lease } from '../../src/lease.ts';
import type { Lock } from '../../src/lock.ts';
import { codeOf, listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  capabilities,
  contended,
  grant,
  granted,
  scriptedBackend,
} from '../scripted-backend.ts';

function withMany(script: Partial<LockBackend> = {}) {
  return scriptedBackend({
    capabilities: { ...capabilities, features: ['many'] },
    attemptMany: (requests, call) => Promise.resolve(requests.map((request) => grant(request, call))),
    ...script,
  });
}

test('one step that fails in a way that can be repeated is abandoned, and the members are taken one by one', async () => {
  const backend = withMany({ attemptMany: () => Promise.reject(new Error('no reply')) });
  const locks = locksOn(backend);
  const set = await locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  expect(backend.of('abandon')).toHaveLength(2);
  expect(backend.of('attempt')).toHaveLength(2);
  await set.release();
});

/** One step and single attempts fail where `bad` is among the names. */
function refusingBad() {
  const refusal = new Error('not allowed');
  return withMany({
    attemptMany: () => Promise.reject(refusal),
    attempt: (request, _enqueue, call) =>
      request.resource === 'bad' ? Promise.reject(refusal) : Promise.resolve(granted(request, call)),
    isRetryable: () => false,
  });
}

test.each(['acquire', 'tryAcquire'] as const)(
  '%s of a set names the member that is refused, and gives back the others',
  async (method) => {
    const backend = refusingBad();
    const locks = locksOn(backend);
    const acquiring = locks.all([locks.lock('a'), locks.lock('bad'), locks.lock('c')])[method]();
    await expect(acquiring).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      lockName: 'bad',
      message: expect.stringContaining('"bad"'),
    });
    await settled();
    expect(backend.of('release')).toHaveLength(1);
  },
);

test('one step without an answer that can be repeated names all members where nothing may be waited for', async () => {
  const backend = withMany({ attemptMany: () => Promise.reject(new Error('no reply')) });
  const locks = locksOn(backend);
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).tryAcquire();
  await expect(acquiring).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    lockName: undefined,
    message: expect.stringContaining('"a", "b"'),
  });
  expect(backend.of('attempt')).toHaveLength(0);
});

test('one step that answers with a grant of another names its member', async () => {
  const backend = withMany({
    attemptMany: (requests, call) =>
      Promise.resolve(
        requests.map((request) =>
          grant(request.resource === 'b' ? { ...request, acquisitionId: 'other' } : request, call),
        ),
      ),
  });
  const locks = locksOn(backend);
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  await expect(acquiring).rejects.toMatchObject({ code: 'LOCK_BACKEND', lockName: 'b' });
});

test('a grant of one step that comes after an abort is abandoned', async () => {
  const later = answerLater<readonly ReturnType<typeof grant>[]>();
  const backend = withMany({ attemptMany: () => later.answer });
  const locks = locksOn(backend);
  const abort = new AbortController();
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire({ signal: abort.signal });
  const rejected = expect(acquiring).rejects.toThrow('enough');
  abort.abort(new Error('enough'));
  await rejected;
  const before = backend.of('abandon').length;
  later.give([]);
  await settled();
  expect(backend.of('abandon').length).toBe(before + 2);
});

test('one step that answers with the grants of others is no grant', async () => {
  const backend = withMany({
    attemptMany: (requests, call) =>
      Promise.resolve(requests.map((request) => grant({ ...request, acquisitionId: 'other' }, call))),
  });
  const locks = locksOn(backend);
  await expect(locks.all([locks.lock('a'), locks.lock('b')]).acquire()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
  });
  expect(backend.of('abandon')).toHaveLength(2);
});

test('one step whose grants are over on arrival are released, and the members are tried one by one', async () => {
  const backend = withMany({
    attemptMany: (requests, call) =>
      Promise.resolve(
        requests.map((request, index) => grant(request, call, index === 1 ? { validForMs: 0 } : {})),
      ),
  });
  const locks = locksOn(backend);
  const set = await locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  expect(backend.of('abandon')).toHaveLength(2);
  expect(backend.of('attempt')).toHaveLength(2);
  await set.release();
  expect(backend.of('release')).toHaveLength(2);
});

test('a set is taken in the order of its names, and its leases stand as they were given', async () => {
  const asked: string[] = [];
  const backend = scriptedBackend({
    attempt(request, _, call) {
      asked.push(request.resource);
      return Promise.resolve(granted(request, call));
    },
  });
  const locks = locksOn(backend);
  const set = await locks.all(['c', 'a', 'b'].map((name) => locks.lock(name))).acquire();
  expect(asked).toEqual(['a', 'b', 'c']);
  expect(set.leases.map(({ name }) => name)).toEqual(['c', 'a', 'b']);
  await set.release();
});

test('a member that is lost while another is waited for is taken again', async () => {
  useFakeClock();
  let holds = true;
  const backend = scriptedBackend({
    attempt: (request, _, call) =>
      Promise.resolve(
        request.resource === 'b' && holds
          ? { status: 'contended', retryAfterMs: 50 }
          : granted(request, call),
      ),
  });
  const locks = locksOn(backend, { ttlMs: 1_000, renewal: 'manual' });
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire({ waitMs: 10_000 });
  await pass(1_500);
  holds = false;
  await pass(200);
  const set = await acquiring;
  expect(set.validForMs).toBeGreaterThan(700);
  expect(backend.of('attempt').length).toBeGreaterThan(4);
});

test('a release that got no answer is reported by an event, and the work of a set keeps its value', async () => {
  const events = listenTo('locks:release-failed');
  const backend = scriptedBackend({
    release: () => Promise.reject(new Error('down')),
    isRetryable: () => false,
  });
  const locks = locksOn(backend);
  expect(await locks.all([locks.lock('a'), locks.lock('b')]).run(() => 'done')).toBe('done');
  expect(events.map(({ name }) => name).sort()).toEqual(['a', 'b']);
});

test('a set of reentrant locks re-enters what its caller holds', async () => {
  const backend = scriptedBackend();
  const locks = locksOn(backend, { reentrant: true });
  const [a, b] = [locks.lock('a'), locks.lock('b')];
  const seen = await a.run(() =>
    locks.all([b, a]).run(({ leases }) => leases.map(({ holdCount }) => holdCount)),
  );
  expect(seen).toEqual([1, 2]);
  expect(backend.of('attempt')).toHaveLength(2);
  expect(backend.of('release')).toHaveLength(2);
});

test('what all() cannot take is refused at once', () => {
  const locks = locksOn(scriptedBackend());
  const refused = [[], {}, [{}], [locks.lock('a'), locks.lock('a')]];
  expect(refused.map((odd) => codeOf(() => locks.all(odd as never)))).toEqual(
    refused.map(() => 'LOCK_INVALID_ARGUMENT'),
  );
});

test.each([5, 'soon', null, { weight: 2 }, { waitMS: 5 }])('a set refuses %o as its options', async (odd) => {
  const locks = locksOn(scriptedBackend());
  const set = locks.all([locks.lock('a'), locks.lock('b')]);
  for (const call of [
    set.acquire(odd as never),
    set.tryAcquire(odd as never),
    set.run(() => {}, odd as never),
  ]) {
    await expect(call).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  }
});

test.each(['within', 'steal'])('a set has no option %s', async (name) => {
  const locks = locksOn(scriptedBackend());
  await expect(locks.all([locks.lock('a')]).acquire({ [name]: undefined } as object)).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('It belongs to acquire()'),
  });
});

test('what is wrong for one member of a set is refused before another is taken', async () => {
  const [quick, slow] = [scriptedBackend(), scriptedBackend({ capabilities: coarse })];
  const set = locksOn(quick).all([locksOn(quick).lock('a'), locksOn(slow).lock('b')]);
  await expect(set.acquire({ ttlMs: 500 })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(quick.sent).toEqual([]);
});

const coarse = { ...capabilities, ttl: { minMs: 1_000, stepMs: 1 } } as const;

test('a set waits no longer than the shortest waitMs of its members', async () => {
  useFakeClock();
  const locks = locksOn(scriptedBackend({ attempt: () => Promise.resolve(contended) }));
  const acquiring = locks.all([locks.lock('a'), locks.lock('b', { waitMs: 100 })]).acquire();
  const rejected = expect(acquiring).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await pass(101);
  await rejected;
});

test('a set whose member ended before the last was granted names that member', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt(request, _, call) {
      if (request.resource !== 'c') return Promise.resolve(granted(request, call));
      return new Promise((resolve) => setTimeout(() => resolve(granted(request, call)), 1_500));
    },
  });
  const locks = locksOn(backend, { ttlMs: 60_000, renewal: 'manual' });
  const members = [locks.lock('a'), locks.lock('b', { ttlMs: 1_000 }), locks.lock('c')];
  const trying = expect(locks.all(members).tryAcquire()).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
    lockName: 'b',
    message: expect.stringContaining('"b"'),
  });
  await pass(3_000);
  await trying;
});

test('a set whose member ended before the last was granted is not delivered by tryAcquire, and its work does not run', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt(request, _, call) {
      if (request.resource === 'a') return Promise.resolve(granted(request, call));
      return new Promise((resolve) => setTimeout(() => resolve(granted(request, call)), 1_500));
    },
  });
  const locks = locksOn(backend, { ttlMs: 1_000, renewal: 'manual' });
  const members = [locks.lock('a'), locks.lock('b', { ttlMs: 60_000 })];
  const trying = expect(locks.all(members).tryAcquire()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await pass(3_000);
  await trying;
  expect(backend.of('release').length).toBe(1);
  const reentrant = members.map(({ name }) => locks.lock(name, { ttlMs: 1_000, reentrant: true }));
  let worked = false;
  const running = locks.all(reentrant).run(() => (worked = true), { ttlMs: 1_000 });
  const refused = expect(running).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await pass(3_000);
  await refused;
  expect(worked).toBe(false);
});

test('a lock of the application’s own that fails to release breaks nothing', async () => {
  const own: Lock = {
    name: 'a',
    mode: { kind: 'exclusive' },
    acquire: () =>
      Promise.resolve({
        name: 'a',
        validForMs: 1_000,
        signal: new AbortController().signal,
        release() {
          throw new Error('broken');
        },
      } as unknown as Lease),
    tryAcquire: () => Promise.resolve(undefined),
    run: () => Promise.reject(new Error('not used')),
    inspect: () => Promise.reject(new Error('not used')),
  };
  const locks = locksOn(
    scriptedBackend({ attempt: () => Promise.reject(new Error('down')), isRetryable: () => false }),
  );
  const set = locks.all([own, locks.lock('b')]);
  await expect(set.acquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await settled();
  const alone = await locks.all([own]).acquire();
  await expect(alone.release()).rejects.toThrow('broken');
  await alone[Symbol.asyncDispose]();
});

test('a set of one name on one backend is refused, also over two managers', () => {
  const backend = scriptedBackend();
  const [one, two] = [locksOn(backend), locksOn(backend)];
  expect(codeOf(() => one.all([one.lock('a'), two.lock('a')]))).toBe('LOCK_INVALID_ARGUMENT');
});

test('sets over several backends are taken in the order of the names', async () => {
  const asked: string[] = [];
  const managers = ['x', 'y'].map((name) =>
    locksOn(
      scriptedBackend({
        name,
        attempt(request, _, call) {
          asked.push(request.resource + name);
          return Promise.resolve(granted(request, call));
        },
      }),
    ),
  ) as LockManager[] as [LockManager, LockManager];
  const [x, y] = managers;
  await x.all([x.lock('b'), y.lock('a'), y.lock('b')]).acquire();
  expect(asked).toEqual(['ay', 'bx', 'by']);
});

test('a try of one step that fails, or whose grants are of no use, rejects, and is not repeated', async () => {
  for (const attemptMany of [
    () => Promise.reject(new Error('no reply')),
    () => Promise.resolve(null as never),
    (requests: readonly AcquireRequest[], call: Call) =>
      Promise.resolve(requests.map((request) => grant(request, call, { lost: AbortSignal.abort() }))),
  ]) {
    const backend = withMany({ attemptMany });
    const locks = locksOn(backend);
    const trying = locks.all([locks.lock('a'), locks.lock('b')]).tryAcquire();
    await expect(trying).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    expect(backend.of('abandon')).toHaveLength(2);
    expect(backend.of('attempt')).toHaveLength(0);
  }
});

test('a set that is too late each time is not tried in a tight loop, and an abort ends it at once', async () => {
  let taken = 0;
  const own = {
    name: 'a',
    mode: { kind: 'exclusive' },
    acquire() {
      taken += 1;
      return Promise.resolve({
        name: 'a',
        validForMs: 0,
        release: () => Promise.resolve(),
      } as unknown as Lease);
    },
  } as unknown as Lock;
  const locks = locksOn(scriptedBackend());
  const set = locks.all([own, locks.lock('b')]);
  expect(await rejectionOf(set.acquire({ waitMs: 200 }))).toBe('LOCK_TIMEOUT');
  expect(taken).toBeLessThan(8);
  const controller = new AbortController();
  const acquiring = set.acquire({ waitMs: 60_000, signal: controller.signal });
  setTimeout(() => controller.abort(new Error('enough')), 20);
  await expect(acquiring).rejects.toThrow('enough');
});

test('a set whose one step was answered late is renewed before it is delivered', async () => {
  const backend = withMany({
    attemptMany: (requests, call) =>
      Promise.resolve(
        requests.map((request, index) =>
          grant(request, call, index === 1 ? { countedFrom: call.now() - request.ttlMs / 2 } : {}),
        ),
      ),
  });
  const locks = locksOn(backend, { ttlMs: 30_000 });
  const set = await locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  expect(backend.of('renew').map(({ ids }) => ids.length)).toEqual([2]);
  expect(set.validForMs).toBeGreaterThan(29_000);
  await set.release();
});

test('a set whose one step was answered late, and which is lost by then, is tried one by one', async () => {
  const backend = withMany({
    attemptMany: (requests, call) =>
      Promise.resolve(
        requests.map((request) => grant(request, call, { countedFrom: call.now() - request.ttlMs / 2 })),
      ),
    renew: (items) => Promise.resolve(items.map(() => ({ status: 'lost', reason: 'taken-over' }) as const)),
  });
  const locks = locksOn(backend, { ttlMs: 30_000 });
  const set = await locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  expect(backend.of('abandon')).toHaveLength(2);
  expect(backend.of('attempt')).toHaveLength(2);
  await set.release();
});
