import { channel } from 'node:diagnostics_channel';
import { isLockError, type LockManager } from '@locks/core';
import type { Call } from '@locks/core/backend';
import { delegate, delegateLocks, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

/** Repeats a call without options where these are refused. */
function lenient<T>(ask: (withOptions: boolean) => T): T {
  const forgive = (error: unknown): T => {
    if (!isLockError(error, 'LOCK_INVALID_ARGUMENT')) throw error;
    return ask(false);
  };
  try {
    const answer = ask(true);
    return answer instanceof Promise ? (answer.catch(forgive) as T) : answer;
  } catch (error) {
    return forgive(error);
  }
}

function ignoresBadOptions(locks: LockManager): LockManager {
  return overLocks(
    delegateLocks(locks, {
      lock: (name, options) => lenient((all) => locks.lock(name, all ? options : undefined)),
    }),
    (lock) => ({
      acquire: (options) => lenient((all) => lock.acquire(all ? options : { waitMs: 0 })),
      tryAcquire: (options) => lenient((all) => lock.tryAcquire(all ? options : undefined)),
    }),
  );
}

export const faultMutants: readonly Mutant[] = [
  {
    name: 'grants-where-the-store-failed',
    says: 'a failed attempt counts as a grant',
    expected: [
      'faults/failing-store',
      'faults/lasting-failure-fails-at-once',
      'faults/transient-failure-is-retried',
    ],
    calls: (backend) => ({
      async attempt(request, enqueue, call) {
        const countedFrom = call.now();
        try {
          return await backend.attempt(request, enqueue, call);
        } catch {
          return { status: 'granted', grant: { request, fencingToken: 1n, countedFrom } };
        }
      },
    }),
  },
  {
    name: 'never-tries-again',
    says: 'no failure counts as retryable',
    expected: [
      'faults/transient-failure-is-retried',
      'faults/store-away-while-waiting',
      'faults/unanswered-release',
      'idempotence/lost-reply-of-acquire',
      'idempotence/lost-reply-of-release',
    ],
    calls: () => ({ isRetryable: () => false }),
  },
  {
    name: 'always-tries-again',
    says: 'every failure counts as retryable',
    expected: ['faults/lasting-failure-fails-at-once'],
    calls: () => ({ isRetryable: () => true }),
  },
  {
    name: 'believes-in-releases',
    says: 'a release without an answer counts as done',
    expected: ['faults/unanswered-release'],
    calls: (backend) => ({ release: (...args) => backend.release(...args).catch(() => 'released') }),
  },
  {
    name: 'trusts-every-grant',
    says: 'missing properties of a grant are made up',
    expected: ['faults/broken-promises'],
    calls: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt?.status !== 'granted') return attempt;
        const { fencingToken = 1n, countedFrom } = attempt.grant;
        return { status: 'granted', grant: { ...attempt.grant, request, fencingToken, countedFrom } };
      },
    }),
  },
  {
    name: 'ignores-bad-options',
    says: 'a bad option is replaced by its default',
    expected: ['faults/bad-options-are-refused'],
    locks: ignoresBadOptions,
  },
  {
    name: 'completes-bad-backends',
    says: 'missing methods of a backend are made up',
    expected: ['faults/bad-backends-are-refused'],
    calls: (backend) => ({
      ...delegate(backend, {}),
      spec: 'locks-backend/1',
      name: backend.name || 'nameless',
    }),
  },
  {
    name: 'plays-down-the-unsupported',
    says: 'an undeclared feature is answered with undefined instead of a refusal',
    expected: ['faults/unsupported-is-refused'],
    locks: (locks) => ({
      forceRelease: (name, options) =>
        locks.forceRelease(name, options).catch((error: unknown) => {
          if (isLockError(error, 'LOCK_UNSUPPORTED')) return [];
          throw error;
        }),
    }),
  },
  {
    name: 'publishes-twice',
    says: 'an acquired lease is published twice',
    expected: ['faults/events-are-published'],
    lease: (lease) => {
      const { name: resource, acquisitionId } = lease;
      channel('locks:acquired').publish({ name: resource, acquisitionId, backend: 'memory' });
      return lease;
    },
  },
  {
    name: 'a-late-timer-is-a-verdict',
    says: 'a call whose deadline passes while the event loop stands still is given up, and not sent',
    expected: ['faults/stall-after-a-release', 'faults/stall-after-an-acquire'],
    calls: (backend) => ({
      attempt: (request, enqueue, call) => inTime(call, () => backend.attempt(request, enqueue, call)),
      release: (grant, call) => inTime(call, () => backend.release(grant, call)),
    }),
  },
];

/** Makes a call a few milliseconds later, if its deadline of now has not passed by then. */
async function inTime<T>(call: Call, send: () => Promise<T>): Promise<T> {
  const { deadline } = call;
  await pause(5);
  if (call.now() >= deadline) throw new Error('the time is over');
  return send();
}
