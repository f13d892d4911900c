import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { LockBackend } from '../../src/backend/types.ts';
import { aroundCalls, CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate, NoReply } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';

/** The ways in which a call to the store fails. */
const WAYS: Readonly<Record<string, (error: Error) => Promise<never>>> = {
  'it rejects': (error) => Promise.reject(error),
  'it throws': (error) => {
    throw error;
  },
  'it answers nothing': () => Promise.resolve() as Promise<never>,
  'it answers nothing, without a promise': () => undefined as unknown as Promise<never>,
  'it answers null': () => Promise.resolve(null as never),
  'it answers nonsense': () => Promise.resolve({ status: 'granted', grant: {} } as never),
};

function broken(backend: LockBackend, fail: () => Promise<never>): LockBackend {
  return delegate(aroundCalls(backend, fail), { isRetryable: () => false, close: () => backend.close() });
}

export const faultCases: readonly ConformanceCase[] = [
  {
    id: 'faults/failing-store',
    clause: '§13.1',
    title: 'when all calls to the store fail, calls reject with LOCK_BACKEND: no lease, nothing unhandled',
    async run(context) {
      for (const [way, fail] of Object.entries(WAYS)) {
        const error = new Error(`the store is down (${context.name()})`);
        const unhandled: unknown[] = [];
        const listen = (reason: unknown): void => void unhandled.push(reason);
        process.on('unhandledRejection', listen);
        try {
          const { locks } = await context.client({ wrap: (backend) => broken(backend, () => fail(error)) });
          const lock = locks.lock(context.name());
          const isTold = (failure: { code?: string; cause?: unknown; backend?: string }): boolean => {
            assert.equal(failure.code, 'LOCK_BACKEND', way);
            if (way === 'it rejects' || way === 'it throws') assert.equal(failure.cause, error, way);
            assert.ok(failure.cause instanceof Error, way);
            return true;
          };
          await assert.rejects(lock.acquire({ waitMs: context.timing.slackMs / 4 }), isTold);
          await assert.rejects(lock.tryAcquire(), isTold);
          await assert.rejects(
            lock.run(() => assert.fail(`${way}: it worked`), { waitMs: 0 }),
            isTold,
          );
          if (way === 'it rejects' || way === 'it throws') await assert.rejects(lock.inspect(), isTold);
          await new Promise(setImmediate);
        } finally {
          process.off('unhandledRejection', listen);
        }
        // The rejection may come from a concurrent case; no case may leave one unhandled.
        assert.deepEqual(unhandled, [], way);
      }
    },
  },
  {
    id: 'faults/failing-renewals',
    clause: '§1.5',
    title:
      'renewals that fail or answer nonsense extend nothing: the lease is lost by its deadline, and its signal aborts',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      await Promise.all(
        Object.entries(WAYS).map(async ([way, fail]) => {
          const { locks } = await context.client({
            wrap: (backend) =>
              delegate(backend, { renew: () => fail(new Error('no renewal')), isRetryable: () => true }),
          });
          const lease = await locks.lock(context.name()).acquire({ ttlMs });
          const { signal } = lease;
          await assert.rejects(lease.renew(), { code: 'LOCK_BACKEND' }, way);
          await context.until(
            `${way}: the signal of the lost lease aborts`,
            () => signal.aborted,
            ttlMs + context.timing.slackMs,
          );
          assert.throws(() => signal.throwIfAborted(), { code: 'LOCK_LOST' });
        }),
      );
    },
  },
  {
    id: 'faults/transient-failure-is-retried',
    clause: '§13.2',
    title: 'an attempt that fails once is repeated within waitMs, and granted',
    async run(context) {
      const name = context.name();
      let failures = 3;
      const { locks } = await context.client({
        wrap: (backend) =>
          delegate(backend, {
            attempt: (...args) => (failures-- > 0 ? Promise.reject(new NoReply()) : backend.attempt(...args)),
          }),
      });
      const lease = await locks.lock(name).acquire({ waitMs: 20 * context.timing.slackMs });
      assert.ok(failures < 0, 'the attempt was not repeated');
      lease.assertValid();
      await lease.release();
      failures = Number.POSITIVE_INFINITY;
      const startedAt = performance.now();
      const elapsed = context.stopwatch();
      const waitMs = context.timing.slackMs / 2;
      const isTold = (error: { code?: string; cause?: unknown }) =>
        error.code === 'LOCK_BACKEND' && error.cause instanceof NoReply;
      await assert.rejects(locks.lock(name).acquire({ waitMs }), isTold);
      const tookMs = performance.now() - startedAt;
      assert.ok(
        tookMs >= waitMs - 1 && elapsed() <= waitMs + 2 * context.timing.slackMs,
        `the acquire gave up after ${tookMs} ms of ${waitMs}`,
      );
    },
  },
  {
    id: 'faults/lasting-failure-fails-at-once',
    clause: '§13.1',
    title: 'a failure that is not retryable ends an acquire at once, and its id is abandoned',
    async run(context) {
      const calls = new CallCounter();
      const refusal = new Error('wrong password');
      const { locks } = await context.client({
        wrap: (backend) =>
          calls.wrap(delegate(backend, { attempt: () => Promise.reject(refusal), isRetryable: () => false })),
      });
      const elapsed = context.stopwatch();
      const waitMs = 4 * context.timing.slackMs;
      await assert.rejects(locks.lock(context.name()).acquire({ waitMs }), {
        code: 'LOCK_BACKEND',
        cause: refusal,
      });
      const tookMs = elapsed();
      assert.ok(tookMs < 3 * context.timing.slackMs, `it took ${tookMs} ms`);
      assert.equal(calls.of('attempt'), 1);
      await context.until('the id is abandoned', () => calls.of('abandon') === 1);
    },
  },
  {
    id: 'faults/unanswered-release',
    clause: '§2.5',
    title: 'a release without an answer rejects within about a second, and run keeps the outcome of its work',
    async run(context) {
      const names = [context.name(), context.name()] as const;
      const sent: string[] = [];
      const { locks } = await context.client({
        wrap: (backend) =>
          delegate(backend, {
            release: (grant) => {
              sent.push(grant.request.resource);
              return Promise.reject(new NoReply('release'));
            },
          }),
      });
      const events: unknown[] = [];
      const listen = (message: unknown): void => {
        if ((message as { name?: string }).name === names[1]) events.push(message);
      };
      subscribe('locks:release-failed', listen);
      try {
        const elapsed = context.stopwatch();
        const lease = await locks.lock(names[0]).acquire();
        const kept = locks.lock(names[1]).run(() => 'the work is done');
        await assert.rejects(lease.release(), { code: 'LOCK_BACKEND', lockName: names[0] });
        const tookMs = elapsed();
        assert.ok(tookMs < context.releaseBudgetMs + 3 * context.timing.slackMs, `it took ${tookMs} ms`);
        assert.ok(sent.filter((name) => name === names[0]).length > 1, 'the release was not repeated');
        assert.equal(await kept, 'the work is done');
        assert.equal(events.length, 1, 'the failed release was not reported');
      } finally {
        unsubscribe('locks:release-failed', listen);
      }
    },
  },
  {
    id: 'faults/broken-promises',
    clause: '§13.1',
    title: 'a grant without its declared token, without its time, or for another id gives no lease',
    async run(context) {
      const name = context.name();
      const { capabilities } = await context.backend();
      const faults: object[] = [{ request: { acquisitionId: 'another' } }, { countedFrom: undefined }];
      if (capabilities.fencing !== 'none') faults.push({ fencingToken: undefined });
      for (const fault of faults) {
        const calls = new CallCounter();
        const { locks } = await context.client({
          wrap: (backend) =>
            calls.wrap(
              delegate(backend, {
                async attempt(...args) {
                  const attempt = await backend.attempt(...args);
                  return attempt.status === 'granted'
                    ? { ...attempt, grant: Object.assign({ ...attempt.grant }, fault) }
                    : attempt;
                },
              }),
            ),
        });
        const acquiring = locks.lock(name).acquire({ waitMs: context.timing.slackMs });
        await assert.rejects(acquiring, { code: 'LOCK_BACKEND' }, JSON.stringify(Object.keys(fault)));
        await context.until('the grant is abandoned', () => calls.answersTo('abandon') > 0);
        assert.deepEqual((await locks.inspect(name)).holders, []);
      }
    },
  },
];
