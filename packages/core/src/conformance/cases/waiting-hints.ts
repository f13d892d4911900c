import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../backend/types.ts';
import { Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { openCall } from '../raw.ts';
import { watch } from '../waiter.ts';

/** The store says neither when to attempt again nor when it is our turn, but for what `changes` say. */
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
    title: 'a hint is followed by a new attempt, and nothing else is',
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const holder = await (await stage.client()).locks.lock(name).acquire();
      const traffic = new Traffic();
      let hint: (grant?: Grant) => void = () => {};
      const awaitTurn = (): Promise<Grant | undefined> => new Promise((resolve) => (hint = resolve));
      const { locks } = await stage.client({ wrap: (backend) => traffic.wrap(mute(backend, { awaitTurn })) });
      const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs });
      const waits = watch(waiting);
      await stage.until('it waits for a hint', () => traffic.of('awaitTurn') === 1);
      await stage.sleep(slackMs / 2);
      assert.equal(traffic.of('attempt'), 1, 'it attempted again without a hint');
      hint();
      await stage.until('it attempts again', () => traffic.of('awaitTurn') === 2, slackMs);
      assert.equal(traffic.of('attempt'), 2);
      assert.equal(waits.settled, false);
      await holder.release();
      hint();
      await stage.until('it is granted', () => waits.settled || (hint(), false), 3 * slackMs);
      await (await waiting).release();
    },
  },
  {
    id: 'waiting/hints-make-no-tight-loop',
    clause: '§7.6',
    title: 'hints that come all the time, and bring nothing, do not make it poll in a tight loop',
    async run(stage) {
      const name = stage.name();
      const holder = await (await stage.client()).locks.lock(name).acquire();
      const traffic = new Traffic();
      const awaitTurn = async (): Promise<undefined> => undefined;
      const { locks } = await stage.client({ wrap: (backend) => traffic.wrap(mute(backend, { awaitTurn })) });
      // The first call may open what the backend needs.
      await locks.lock(stage.name()).run(async () => {});
      const before = traffic.of('attempt');
      const { slackMs } = stage.timing;
      await assert.rejects(locks.lock(name).acquire({ waitMs: slackMs }), { code: 'LOCK_TIMEOUT' });
      const attempts = traffic.of('attempt') - before;
      assert.ok(attempts > 1, 'it took no hint');
      assert.ok(attempts < 0.4 * slackMs, `${attempts} attempts in ${slackMs} ms`);
      await holder.release();
    },
  },
  {
    id: 'waiting/falls-back-to-retry-after',
    clause: '§7.6',
    title: 'where no hint ever comes, it attempts again when the store said, and no more often',
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      const retryAfterMs = slackMs / 5;
      const never = (): Promise<undefined> => new Promise(() => {});
      for (const changes of [{}, { awaitTurn: never }]) {
        const holder = await (await stage.client()).locks.lock(name).acquire();
        const traffic = new Traffic();
        const { locks } = await stage.client({
          wrap: (backend) => {
            const silent = mute(backend, changes);
            const attempt: LockBackend['attempt'] = async (...args) => {
              const answer = await silent.attempt(...args);
              return answer.status === 'granted' ? answer : { status: 'contended', retryAfterMs };
            };
            return traffic.wrap({ ...silent, attempt });
          },
        });
        const startedAt = performance.now();
        const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs + idleGapMs });
        const waits = watch(waiting);
        await stage.until('it attempts for the third time', () => traffic.of('attempt') === 3, 3 * slackMs);
        // Up to a fifth sooner, so that those who were refused together do not come back together.
        const twoPauses = performance.now() - startedAt;
        assert.ok(
          twoPauses >= 2 * 0.8 * retryAfterMs - 2,
          `two pauses of ${retryAfterMs} ms took ${twoPauses} ms`,
        );
        await holder.release();
        await stage.until('it is granted', () => waits.settled, slackMs + idleGapMs);
        await (await waiting).release();
      }
    },
  },
  {
    id: 'waiting/silent-store-is-bounded',
    clause: '§7.5',
    title: 'waitMs covers a store that does not answer: LOCK_BACKEND in time, and the id is given up',
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const traffic = new Traffic();
      let answer: () => void = () => {};
      const mended = new Promise<void>((resolve) => (answer = resolve));
      const { locks } = await stage.client({
        wrap: (backend) =>
          traffic.wrap(
            delegate(backend, {
              // On its way: it knows nothing of the end of the call.
              attempt: (request, enqueue) => mended.then(() => backend.attempt(request, enqueue, openCall)),
            }),
          ),
      });
      const startedAt = performance.now();
      const elapsed = stage.stopwatch();
      await assert.rejects(locks.lock(name).acquire({ waitMs: slackMs / 2 }), {
        code: 'LOCK_BACKEND',
        resource: name,
      });
      const waitedMs = performance.now() - startedAt;
      assert.ok(waitedMs >= slackMs / 2 - 1 && elapsed() <= 3 * slackMs, `it gave up after ${waitedMs} ms`);
      await stage.until('the id is abandoned', () => traffic.answersTo('abandon') > 0);
      // Now the attempt reaches the store after the abandon, and is granted to nobody.
      const before = traffic.of('abandon');
      answer();
      await stage.until('the late grant is abandoned', () => traffic.answersTo('abandon') > before);
      const other = await (await stage.client()).locks.lock(name).tryAcquire();
      assert.ok(other, 'a grant that came too late still holds');
      await other.release();
    },
  },
];
