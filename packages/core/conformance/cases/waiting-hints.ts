import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { openCall } from '../raw.ts';
import { watch } from '../waiter.ts';

/** A client whose store gives neither a time for the next attempt nor a wake-up, except for what `changes` overrides. */
function mute(backend: LockBackend, changes: Partial<LockBackend>): LockBackend {
  const { awaitTurn: _, ...deaf } = delegate(backend, {
    async attempt(request, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      return attempt.status === 'granted' ? attempt : { status: 'contended' };
    },
  });
  return { ...deaf, ...changes };
}

export const waitingHintCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/hint-is-followed-by-attempt',
    clause: '§7.6',
    title: 'a new attempt follows a hint, and nothing else',
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const holder = await (await context.client()).locks.lock(name).acquire();
      const calls = new CallCounter();
      let hint: (grant?: Grant) => void = () => {};
      const awaitTurn = (): Promise<Grant | undefined> => new Promise((resolve) => (hint = resolve));
      const { locks } = await context.client({
        wrap: (backend) => calls.wrap(mute(backend, { awaitTurn })),
      });
      const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs });
      const waits = watch(waiting);
      await context.until('the waiter waits for a hint', () => calls.of('awaitTurn') === 1);
      await context.sleep(slackMs / 2);
      assert.equal(calls.of('attempt'), 1, 'the waiter attempted again without a hint');
      hint();
      await context.until('the waiter attempts again', () => calls.of('awaitTurn') === 2, slackMs);
      assert.equal(calls.of('attempt'), 2);
      assert.equal(waits.settled, false);
      await holder.release();
      hint();
      await context.until('the waiter is granted', () => waits.settled || (hint(), false), 3 * slackMs);
      await (await waiting).release();
    },
  },
  {
    id: 'waiting/hints-make-no-tight-loop',
    clause: '§7.6',
    title: 'hints that come all the time without a free lock do not cause a tight polling loop',
    async run(context) {
      const name = context.name();
      const holder = await (await context.client()).locks.lock(name).acquire();
      const calls = new CallCounter();
      const awaitTurn = async (): Promise<undefined> => undefined;
      const { locks } = await context.client({
        wrap: (backend) => calls.wrap(mute(backend, { awaitTurn })),
      });
      // The first call may open what the backend needs.
      await locks.lock(context.name()).run(async () => {});
      const before = calls.of('attempt');
      const { slackMs } = context.timing;
      await assert.rejects(locks.lock(name).acquire({ waitMs: slackMs }), { code: 'LOCK_TIMEOUT' });
      const attempts = calls.of('attempt') - before;
      assert.ok(attempts > 1, 'the waiter took no hint');
      assert.ok(attempts < 0.4 * slackMs, `${attempts} attempts in ${slackMs} ms`);
      await holder.release();
    },
  },
  {
    id: 'waiting/falls-back-to-retry-after',
    clause: '§7.6',
    title: 'without hints a waiter attempts again after the time that the store gave, and not more often',
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const retryAfterMs = slackMs / 5;
      const never = (): Promise<undefined> => new Promise(() => {});
      for (const changes of [{}, { awaitTurn: never }]) {
        const holder = await (await context.client()).locks.lock(name).acquire();
        const calls = new CallCounter();
        const { locks } = await context.client({
          wrap: (backend) => {
            const silent = mute(backend, changes);
            const attempt: LockBackend['attempt'] = async (...args) => {
              const answer = await silent.attempt(...args);
              return answer.status === 'granted' ? answer : { status: 'contended', retryAfterMs };
            };
            return calls.wrap({ ...silent, attempt });
          },
        });
        const startedAt = performance.now();
        const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs + idleGapMs });
        const waits = watch(waiting);
        await context.until(
          'the waiter attempts for the third time',
          () => calls.of('attempt') === 3,
          3 * slackMs,
        );
        // The pause may be up to a fifth shorter, so that waiters that were refused together do not attempt together again.
        const twoPauses = performance.now() - startedAt;
        assert.ok(
          twoPauses >= 2 * 0.8 * retryAfterMs - 2,
          `two pauses of ${retryAfterMs} ms took ${twoPauses} ms`,
        );
        await holder.release();
        await context.until('the waiter is granted', () => waits.settled, slackMs + idleGapMs);
        await (await waiting).release();
      }
    },
  },
  {
    id: 'waiting/silent-store-is-bounded',
    clause: '§7.5',
    title:
      'waitMs also limits an acquire whose store does not answer: it rejects in time with LOCK_BACKEND, and its id is abandoned',
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const calls = new CallCounter();
      let answer: () => void = () => {};
      const mended = new Promise<void>((resolve) => (answer = resolve));
      const { locks } = await context.client({
        wrap: (backend) =>
          calls.wrap(
            delegate(backend, {
              // The request is on its way: the end of the call does not stop it.
              attempt: (request, enqueue) => mended.then(() => backend.attempt(request, enqueue, openCall)),
            }),
          ),
      });
      const startedAt = performance.now();
      const elapsed = context.stopwatch();
      await assert.rejects(locks.lock(name).acquire({ waitMs: slackMs / 2 }), {
        code: 'LOCK_BACKEND',
        lockName: name,
      });
      const waitedMs = performance.now() - startedAt;
      assert.ok(
        waitedMs >= slackMs / 2 - 1 && elapsed() <= 3 * slackMs,
        `the acquire gave up after ${waitedMs} ms`,
      );
      await context.until('the id is abandoned', () => calls.answersTo('abandon') > 0);
      // Now the attempt reaches the store after its abandon, and is granted although nobody waits for it.
      const before = calls.of('abandon');
      answer();
      await context.until('the late grant is abandoned', () => calls.answersTo('abandon') > before);
      const other = await (await context.client()).locks.lock(name).tryAcquire();
      assert.ok(other, 'a grant that came too late was not abandoned');
      await other.release();
    },
  },
];
