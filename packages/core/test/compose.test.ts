import { expect, test } from 'vitest';
import type { Attempt, LockBackend, Standing } from '../src/backend/types.ts';
import { codeOf, listenTo, locksOn, pass, settled, useFakeClock } from './fixture.ts';
import {
  answerLater,
  capabilities,
  contended,
  grant,
  granted,
  noAnswer,
  scriptedBackend,
} from './scripted-backend.ts';

const modes = { ...capabilities, modes: ['exclusive', 'shared', 'permit'] } as const;

function withModes(script: Partial<LockBackend> = {}) {
  return scriptedBackend({
    capabilities: modes,
    downgrade: () => Promise.resolve({ status: 'held' }),
    resize: () => Promise.resolve({ status: 'set' }),
    ...script,
  });
}

function withMany(script: Partial<LockBackend> = {}) {
  return scriptedBackend({
    capabilities: { ...capabilities, features: ['many'] },
    attemptMany: (requests, call) => Promise.resolve(requests.map((request) => grant(request, call))),
    ...script,
  });
}

test.each<[Standing, string]>([
  [{ status: 'lost', reason: 'taken-over' }, 'LOCK_LOST'],
  [{ status: 'unknown', error: new Error('down') }, 'LOCK_BACKEND'],
])('a downgrade answered %o rejects, and the mode stays', async (standing, code) => {
  const backend = withModes({ downgrade: () => Promise.resolve(standing) });
  const lease = await locksOn(backend).readWriteLock('a').write.acquire();
  await expect(lease.downgrade()).rejects.toMatchObject({ code });
  expect(lease.mode).toEqual({ kind: 'exclusive' });
});

test('a downgrade without an answer gives up, and can be repeated', async () => {
  useFakeClock();
  let answer: () => Promise<Standing> = noAnswer;
  const lease = await locksOn(withModes({ downgrade: () => answer() }))
    .readWriteLock('a')
    .write.acquire();
  const downgrading = lease.downgrade();
  const told = expect(downgrading).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await pass(1_001);
  await told;
  expect(lease.mode).toEqual({ kind: 'exclusive' });
  answer = () => Promise.resolve({ status: 'held' });
  await lease.downgrade();
  expect(lease.mode).toEqual({ kind: 'shared' });
  // Shared already: nothing to ask.
  answer = () => Promise.reject(new Error('asked again'));
  await lease.downgrade();
});

test('a conflict is told at once, also to one that waits, and leaves nothing', async () => {
  const conflict: Attempt = { status: 'conflict', with: { kind: 'permit', limit: 3, weight: 1 } };
  const answers = [conflict, contended, conflict];
  const backend = withModes({ attempt: () => Promise.resolve(answers.shift() ?? contended) });
  const slots = locksOn(backend).semaphore('a', 2);
  await expect(slots.acquire()).rejects.toMatchObject({ code: 'LOCK_CONFLICT', resource: 'a' });
  await expect(slots.acquire()).rejects.toThrow(/a semaphore of 3; a semaphore of 2 was asked for/);
  expect(backend.of('abandon')).toHaveLength(2);
});

test('a resize that conflicts leaves the number as it was', async () => {
  const backend = withModes({
    resize: () => Promise.resolve({ status: 'conflict', with: { kind: 'exclusive' } }),
  });
  const slots = locksOn(backend).semaphore('a', 2);
  await expect(slots.resize(5)).rejects.toMatchObject({ code: 'LOCK_CONFLICT' });
  expect(slots.permits).toBe(2);
  expect(slots.mode).toEqual({ kind: 'permit', limit: 2, weight: 1 });
});

test('steal is refused where the backend cannot, and with within', async () => {
  const lock = locksOn(scriptedBackend()).lock('a');
  await expect(lock.acquire({ steal: true })).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  const lease = await lock.acquire();
  await expect(lock.acquire({ steal: true, within: lease })).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
  });
  await expect(lock.acquire({ steal: 1 as never })).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
});

test('one step that fails in a way that can be repeated is abandoned, and the members are taken one by one', async () => {
  const backend = withMany({ attemptMany: () => Promise.reject(new Error('no reply')) });
  const locks = locksOn(backend);
  const set = await locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  expect(backend.of('abandon')).toHaveLength(2);
  expect(backend.of('attempt')).toHaveLength(2);
  await set.release();
});

test('one step that fails for good is told', async () => {
  const backend = withMany({
    attemptMany: () => Promise.reject(new Error('wrong password')),
    isRetryable: () => false,
  });
  const locks = locksOn(backend);
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire();
  await expect(acquiring).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  expect(backend.of('abandon')).toHaveLength(2);
  expect(backend.of('attempt')).toHaveLength(0);
});

test('a grant of one step that comes after an abort is abandoned', async () => {
  const later = answerLater<readonly ReturnType<typeof grant>[]>();
  const backend = withMany({ attemptMany: () => later.answer });
  const locks = locksOn(backend);
  const abort = new AbortController();
  const acquiring = locks.all([locks.lock('a'), locks.lock('b')]).acquire({ signal: abort.signal });
  const told = expect(acquiring).rejects.toThrow('enough');
  abort.abort(new Error('enough'));
  await told;
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

test('one step whose grants are over on arrival is given back and tried one by one', async () => {
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

test('a release that got no answer is told by an event, and the work of a set keeps its value', async () => {
  const events = listenTo('locks:release-failed');
  const backend = scriptedBackend({
    release: () => Promise.reject(new Error('down')),
    isRetryable: () => false,
  });
  const locks = locksOn(backend);
  expect(await locks.all([locks.lock('a'), locks.lock('b')]).run(() => 'done')).toBe('done');
  expect(events.map(({ resource }) => resource).sort()).toEqual(['a', 'b']);
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
