import { expect, test } from 'vitest';
import type { AcquireRequest, Attempt, LockBackend, RenewalStatus } from '../../src/backend/types.ts';
import { locksOn, pass, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  capabilities,
  contended,
  granted,
  noAnswer,
  scriptedBackend,
} from '../scripted-backend.ts';

const modes = { ...capabilities, modes: ['exclusive', 'shared', 'permit'] } as const;

function withModes(script: Partial<LockBackend> = {}) {
  return scriptedBackend({
    capabilities: modes,
    downgrade: () => Promise.resolve({ status: 'held' }),
    resize: () => Promise.resolve({ status: 'set' }),
    ...script,
  });
}

test.each<[RenewalStatus, string]>([
  [{ status: 'lost', reason: 'taken-over' }, 'LOCK_LOST'],
  [{ status: 'unknown', error: new Error('down') }, 'LOCK_BACKEND'],
])('a downgrade answered %o rejects, and the mode stays', async (renewalStatus, code) => {
  const backend = withModes({ downgrade: () => Promise.resolve(renewalStatus) });
  const lease = await locksOn(backend).readWriteLock('a').write.acquire();
  await expect(lease.downgrade()).rejects.toMatchObject({ code });
  expect(lease.mode).toEqual({ kind: 'exclusive' });
});

test('a downgrade without an answer gives up, and can be repeated', async () => {
  useFakeClock();
  let answer: () => Promise<RenewalStatus> = noAnswer;
  const lease = await locksOn(withModes({ downgrade: () => answer() }))
    .readWriteLock('a')
    .write.acquire();
  const downgrading = lease.downgrade();
  const rejected = expect(downgrading).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await pass(1_001);
  await rejected;
  expect(lease.mode).toEqual({ kind: 'exclusive' });
  answer = () => Promise.resolve({ status: 'held' });
  await lease.downgrade();
  expect(lease.mode).toEqual({ kind: 'shared' });
  // Shared already: nothing to ask.
  answer = () => Promise.reject(new Error('asked again'));
  await lease.downgrade();
});

test('a conflict rejects at once, also a waiter, and leaves nothing', async () => {
  const conflict: Attempt = { status: 'conflict', with: { kind: 'permit', limit: 3, weight: 1 } };
  const answers = [conflict, contended, conflict];
  const backend = withModes({ attempt: () => Promise.resolve(answers.shift() ?? contended) });
  const slots = locksOn(backend).semaphore('a', 2);
  await expect(slots.acquire()).rejects.toMatchObject({ code: 'LOCK_CONFLICT', lockName: 'a' });
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

test('a re-entry while a downgrade is under way does not count on being alone', async () => {
  const downgraded = answerLater<RenewalStatus>();
  const locks = locksOn(withModes({ downgrade: () => downgraded.answer }));
  const { read, write } = locks.readWriteLock('a');
  const lease = await write.acquire();
  const downgrading = lease.downgrade();
  await expect(write.acquire({ within: lease })).rejects.toMatchObject({ code: 'LOCK_REENTRANT' });
  await (await read.acquire({ within: lease })).release();
  downgraded.give({ status: 'held' });
  await downgrading;
});

test('after a downgrade without an answer no re-entry is admitted that counts on being alone', async () => {
  const locks = locksOn(withModes({ downgrade: () => Promise.reject(new Error('down')) }));
  const { write } = locks.readWriteLock('a');
  const lease = await write.acquire();
  await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await expect(write.acquire({ within: lease })).rejects.toMatchObject({ code: 'LOCK_REENTRANT' });
});

test.each<RenewalStatus>([{ status: 'held' }, { status: 'lost', reason: 'force-released' }])(
  'a downgrade answered %o after a release says that it is not held',
  async (renewalStatus) => {
    const downgraded = answerLater<RenewalStatus>();
    const lease = await locksOn(withModes({ downgrade: () => downgraded.answer }))
      .readWriteLock('a')
      .write.acquire();
    const downgrading = lease.downgrade();
    const released = lease.release();
    downgraded.give(renewalStatus);
    await expect(downgrading).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' });
    await released;
    expect(lease.signal.aborted).toBe(false);
  },
);

test('a weight that is absent by value is one, also beside other options', async () => {
  const asked: AcquireRequest[] = [];
  const backend = withModes({
    attempt(request, _, call) {
      asked.push(request);
      return Promise.resolve(granted(request, call));
    },
  });
  const slots = locksOn(backend).semaphore('a', 3);
  await slots.acquire({ weight: undefined, waitMs: 50 });
  await slots.tryAcquire({ weight: 2 });
  await slots.acquire();
  expect(asked.map(({ mode }) => mode.kind === 'permit' && mode.weight)).toEqual([1, 2, 1]);
  await expect(slots.acquire(null as never)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
});

test('a resize that the backend does not answer sets nothing', async () => {
  const slots = locksOn(withModes({ resize: () => Promise.resolve(undefined as never) })).semaphore('a', 2);
  await expect(slots.resize(5)).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  expect(slots.permits).toBe(2);
});
