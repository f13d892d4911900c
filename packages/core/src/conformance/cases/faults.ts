import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { LockBackend } from '../../backend/types.ts';
import { aroundCalls, Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate, NoReply } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';

/** Every call fails, each in its way. */
const WAYS: Readonly<Record<string, (error: Error) => Promise<never>>> = {
  'it rejects': (error) => Promise.reject(error),
  'it throws': (error) => {
    throw error;
  },
  'it answers nothing': () => Promise.resolve() as Promise<never>,
  'it answers nothing, and not even by a promise': () => undefined as unknown as Promise<never>,
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
    title:
      'a store of which every call fails gives LOCK_BACKEND: never a lease, never an unhandled rejection',
    async run(stage) {
      for (const [way, fail] of Object.entries(WAYS)) {
        const error = new Error(`the store is down (${stage.name()})`);
        const unhandled: unknown[] = [];
        const listen = (reason: unknown): void => void unhandled.push(reason);
        process.on('unhandledRejection', listen);
        try {
          const { locks } = await stage.client({ wrap: (backend) => broken(backend, () => fail(error)) });
          const lock = locks.lock(stage.name());
          const isTold = (failure: { code?: string; cause?: unknown; backend?: string }): boolean => {
            assert.equal(failure.code, 'LOCK_BACKEND', way);
            if (way === 'it rejects' || way === 'it throws') assert.equal(failure.cause, error, way);
            assert.ok(failure.cause instanceof Error, way);
            return true;
          };
          await assert.rejects(lock.acquire({ waitMs: stage.timing.slackMs / 4 }), isTold);
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
        // Cases run side by side; but none of them may leave a rejection to nobody.
        assert.deepEqual(unhandled, [], way);
      }
    },
  },
  {
    id: 'faults/failing-renewals',
    clause: '§1.5',
    title: 'renewals that fail or answer nonsense move nothing: the lease is lost by its deadline, and told',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      await Promise.all(
        Object.entries(WAYS).map(async ([way, fail]) => {
          const { locks } = await stage.client({
            wrap: (backend) =>
              delegate(backend, { renew: () => fail(new Error('no renewal')), isRetryable: () => true }),
          });
          const lease = await locks.lock(stage.name()).acquire({ ttlMs });
          const { signal } = lease;
          await assert.rejects(lease.renew(), { code: 'LOCK_BACKEND' }, way);
          await stage.until(`${way}: the loss is told`, () => signal.aborted, ttlMs + stage.timing.slackMs);
          assert.throws(() => signal.throwIfAborted(), { code: 'LOCK_LOST' });
        }),
      );
    },
  },
  {
    id: 'faults/transient-failure-is-retried',
    clause: '§13.2',
    title: 'a transient failure is retried within waitMs, and then granted',
    async run(stage) {
      const name = stage.name();
      let failures = 3;
      const { locks } = await stage.client({
        wrap: (backend) =>
          delegate(backend, {
            attempt: (...args) => (failures-- > 0 ? Promise.reject(new NoReply()) : backend.attempt(...args)),
          }),
      });
      const lease = await locks.lock(name).acquire({ waitMs: 20 * stage.timing.slackMs });
      assert.ok(failures < 0, 'it did not try again');
      lease.assertValid();
      await lease.release();
      failures = Number.POSITIVE_INFINITY;
      const startedAt = performance.now();
      const elapsed = stage.stopwatch();
      const waitMs = stage.timing.slackMs / 2;
      const isTold = (error: { code?: string; cause?: unknown }) =>
        error.code === 'LOCK_BACKEND' && error.cause instanceof NoReply;
      await assert.rejects(locks.lock(name).acquire({ waitMs }), isTold);
      const tookMs = performance.now() - startedAt;
      assert.ok(
        tookMs >= waitMs - 1 && elapsed() <= waitMs + 2 * stage.timing.slackMs,
        `it gave up after ${tookMs} ms of ${waitMs}`,
      );
    },
  },
  {
    id: 'faults/lasting-failure-fails-at-once',
    clause: '§13.1',
    title: 'a failure that no repetition mends ends an acquire at once, and the id is given up',
    async run(stage) {
      const traffic = new Traffic();
      const refusal = new Error('wrong password');
      const { locks } = await stage.client({
        wrap: (backend) =>
          traffic.wrap(
            delegate(backend, { attempt: () => Promise.reject(refusal), isRetryable: () => false }),
          ),
      });
      const elapsed = stage.stopwatch();
      const waitMs = 4 * stage.timing.slackMs;
      await assert.rejects(locks.lock(stage.name()).acquire({ waitMs }), {
        code: 'LOCK_BACKEND',
        cause: refusal,
      });
      const tookMs = elapsed();
      assert.ok(tookMs < 3 * stage.timing.slackMs, `it took ${tookMs} ms`);
      assert.equal(traffic.of('attempt'), 1);
      await stage.until('the id is abandoned', () => traffic.of('abandon') === 1);
    },
  },
  {
    id: 'faults/unanswered-release',
    clause: '§2.5',
    title:
      'a release that gets no answer rejects within about a second, and run keeps the outcome of its work',
    async run(stage) {
      const names = [stage.name(), stage.name()] as const;
      const sent: string[] = [];
      const { locks } = await stage.client({
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
        if ((message as { resource?: string }).resource === names[1]) events.push(message);
      };
      subscribe('locks:release-failed', listen);
      try {
        const elapsed = stage.stopwatch();
        const lease = await locks.lock(names[0]).acquire();
        const kept = locks.lock(names[1]).run(() => 'the work is done');
        await assert.rejects(lease.release(), { code: 'LOCK_BACKEND', resource: names[0] });
        const tookMs = elapsed();
        assert.ok(tookMs < 1_000 + 3 * stage.timing.slackMs, `it took ${tookMs} ms`);
        assert.ok(sent.filter((name) => name === names[0]).length > 1, 'it was not repeated');
        assert.equal(await kept, 'the work is done');
        assert.equal(events.length, 1, 'nobody was told of the failed release');
      } finally {
        unsubscribe('locks:release-failed', listen);
      }
    },
  },
  {
    id: 'faults/broken-promises',
    clause: '§13.1',
    title: 'a grant without its promised token, without its time, or for another id, is no lease',
    async run(stage) {
      const name = stage.name();
      const { capabilities } = await stage.backend();
      const faults: object[] = [{ request: { acquisitionId: 'another' } }, { countedFrom: undefined }];
      if (capabilities.fencing !== 'none') faults.push({ fencingToken: undefined });
      for (const fault of faults) {
        const traffic = new Traffic();
        const { locks } = await stage.client({
          wrap: (backend) =>
            traffic.wrap(
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
        const acquiring = locks.lock(name).acquire({ waitMs: stage.timing.slackMs });
        await assert.rejects(acquiring, { code: 'LOCK_BACKEND' }, JSON.stringify(Object.keys(fault)));
        await stage.until('the grant is abandoned', () => traffic.answersTo('abandon') > 0);
        assert.deepEqual((await locks.inspect(name)).holders, []);
      }
    },
  },
];
