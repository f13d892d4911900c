import { channel } from 'node:diagnostics_channel';
import { isLockError, type LockBackend, type LockManager } from '@locks/core';
import { delegate, delegateLocks, overLeases, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';

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
    host: 'memory',
    expected: [
      'faults/failing-store',
      'faults/lasting-failure-fails-at-once',
      'faults/transient-failure-is-retried',
    ],
    calls: onCalls((backend) =>
      delegate(backend, {
        async attempt(request, enqueue, call) {
          const countedFrom = call.now();
          try {
            return await backend.attempt(request, enqueue, call);
          } catch {
            return { status: 'granted', grant: { request, fencingToken: 1n, countedFrom } };
          }
        },
      }),
    ),
  },
  {
    name: 'hopes-for-renewals',
    says: 'a failed renewal counts as confirmed',
    host: 'memory',
    expected: ['faults/failing-renewals', 'faults/store-away-while-held'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async renew(items, call) {
          try {
            return await backend.renew(items, call);
          } catch {
            return items.map(() => ({ status: 'held' }));
          }
        },
      }),
    ),
  },
  {
    name: 'never-tries-again',
    says: 'no failure counts as retryable',
    host: 'memory',
    expected: [
      'faults/transient-failure-is-retried',
      'faults/store-away-while-waiting',
      'faults/unanswered-release',
    ],
    calls: onCalls((backend) => delegate(backend, { isRetryable: () => false })),
  },
  {
    name: 'always-tries-again',
    says: 'every failure counts as retryable',
    host: 'memory',
    expected: ['faults/lasting-failure-fails-at-once'],
    calls: onCalls((backend) => delegate(backend, { isRetryable: () => true })),
  },
  {
    name: 'believes-in-releases',
    says: 'a release without an answer counts as done',
    host: 'memory',
    expected: ['faults/unanswered-release'],
    calls: onCalls((backend) =>
      delegate(backend, { release: (...args) => backend.release(...args).catch(() => 'released') }),
    ),
  },
  {
    name: 'trusts-every-grant',
    says: 'missing properties of a grant are made up',
    host: 'memory',
    expected: ['faults/broken-promises'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt?.status !== 'granted') return attempt;
          const { fencingToken = 1n, countedFrom } = attempt.grant;
          return { status: 'granted', grant: { ...attempt.grant, request, fencingToken, countedFrom } };
        },
      }),
    ),
  },
  {
    name: 'ignores-bad-options',
    says: 'a bad option is replaced by its default',
    host: 'memory',
    expected: ['faults/bad-options-are-refused'],
    locks: ignoresBadOptions,
  },
  {
    name: 'completes-bad-backends',
    says: 'missing methods of a backend are made up',
    host: 'memory',
    expected: ['faults/bad-backends-are-refused'],
    calls: (backend) => {
      if (typeof backend !== 'object' || typeof backend.attempt !== 'function') return backend;
      return {
        ...delegate(backend, {}),
        spec: 'locks-backend/1',
        name: backend.name || 'nameless',
      } satisfies LockBackend;
    },
  },
  {
    name: 'plays-down-the-unsupported',
    says: 'an undeclared feature is answered with undefined instead of a refusal',
    host: 'memory',
    expected: ['faults/unsupported-is-refused'],
    locks: (locks) =>
      delegateLocks(locks, {
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
    host: 'memory',
    expected: ['faults/events-are-published'],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        const { name: resource, acquisitionId } = lease;
        channel('locks:acquired').publish({ resource, acquisitionId, backend: 'memory' });
        return lease;
      }),
  },
];
