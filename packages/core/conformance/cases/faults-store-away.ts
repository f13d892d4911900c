import assert from 'node:assert/strict';
import { aroundCalls, CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { NoReply } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';
import { watch } from '../waiter.ts';

export const storeAwayCases: readonly ConformanceCase[] = [
  {
    id: 'faults/store-away-while-held',
    clause: '§8.2',
    title:
      'while the store is unreachable a lease is lost by its deadline and its signal aborts; afterwards the lock can be taken again',
    // It may take the store away from everybody.
    alone: true,
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const ttlMs = context.livingTtlMs;
      let away = false;
      const { locks } = await context.client({
        wrap: (backend) => aroundCalls(backend, (_, send) => (away ? Promise.reject(new NoReply()) : send())),
      });
      const { locks: others } = await context.client();
      const lease = await locks.lock(name).acquire({ ttlMs });
      const { signal } = lease;
      const repair = await context.harness.faults?.cut?.();
      away = true;
      try {
        await context.until('the signal of the lost lease aborts', () => signal.aborted, ttlMs + slackMs);
        assert.throws(() => signal.throwIfAborted(), { code: 'LOCK_LOST', reason: 'unconfirmed' });
        assert.equal(lease.validForMs, 0);
      } finally {
        away = false;
        await repair?.();
      }
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
      const next = await others.lock(name).acquire({ waitMs: 20 * slackMs });
      await next.release();
      const again = await locks.lock(name).acquire({ waitMs: 20 * slackMs });
      again.assertValid();
      await again.release();
    },
  },
  {
    id: 'faults/store-away-while-waiting',
    clause: '§13.2',
    title: 'a waiter that cannot reach the store for a while still gets the lock',
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      let away = false;
      const holder = await (await context.client()).locks.lock(name).acquire();
      const calls = new CallCounter();
      const { locks } = await context.client({
        wrap: (backend) =>
          calls.wrap(
            aroundCalls(backend, async (sent, send) => {
              if (away) throw new NoReply(sent);
              const answer = await send();
              // Calls that were under way when the store went away never get an answer.
              if (away) throw new NoReply(sent);
              return answer;
            }),
          ),
      });
      const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs + 4 * idleGapMs });
      const waits = watch(waiting);
      await context.until('it waits', () => calls.answersTo('attempt') > 0);
      away = true;
      await holder.release();
      await context.sleep(slackMs / 2);
      assert.equal(waits.settled, false);
      away = false;
      await context.until('the waiter is granted', () => waits.settled, 1_000 + idleGapMs + 2 * slackMs);
      await (await waiting).release();
    },
  },
  {
    id: 'faults/ping-reports-whether-the-store-answers',
    clause: '§14.4',
    title: 'ping gives the answer time of the store, and rejects with LOCK_BACKEND while it is unreachable',
    // It may take the store away from everybody.
    alone: true,
    async run(context) {
      const { slackMs } = context.timing;
      const answerMs = 2 * slackMs;
      const cut = context.harness.faults?.cut;
      let away = false;
      const { locks } = await context.client({
        // A store that cannot be cut off is in this process or on this disk: there the case checks core alone.
        wrap: (backend) =>
          cut === undefined
            ? aroundCalls(backend, (_, send) => (away ? Promise.reject(new NoReply()) : send()))
            : backend,
      });
      // The first call may have to connect.
      const first = await locks.ping({ answerMs: 20 * slackMs });
      assert.ok(first.tookMs >= 0 && first.tookMs <= 20 * slackMs);
      const repair = await cut?.();
      away = true;
      const startedAt = performance.now();
      try {
        await assert.rejects(locks.ping({ answerMs }), { code: 'LOCK_BACKEND' });
        assert.ok(performance.now() - startedAt <= answerMs + slackMs, 'ping took longer than its limit');
      } finally {
        away = false;
        await repair?.();
      }
      let answers = false;
      for (let tries = 0; !answers && tries < 20; tries += 1) {
        answers = await locks.ping({ answerMs }).then(
          () => true,
          () => false,
        );
        if (!answers) await context.sleep(slackMs / 4);
      }
      assert.ok(answers, 'the store is back, and ping rejects');
    },
  },
];
