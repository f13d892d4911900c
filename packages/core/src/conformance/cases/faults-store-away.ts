import assert from 'node:assert/strict';
import { aroundCalls, Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { NoReply } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';
import { watch } from '../waiter.ts';

export const storeAwayCases: readonly ConformanceCase[] = [
  {
    id: 'faults/store-away-while-held',
    clause: '§8.2',
    title:
      'while the store is away a lease is lost by its deadline, and told; afterwards it can be had again',
    // It may take the store away from everybody.
    alone: true,
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const ttlMs = stage.livingTtlMs;
      let away = false;
      const { locks } = await stage.client({
        wrap: (backend) => aroundCalls(backend, (_, send) => (away ? Promise.reject(new NoReply()) : send())),
      });
      const { locks: others } = await stage.client();
      const lease = await locks.lock(name).acquire({ ttlMs });
      const { signal } = lease;
      const mend = await stage.harness.faults?.cut?.();
      away = true;
      try {
        await stage.until('the loss is told', () => signal.aborted, ttlMs + slackMs);
        assert.throws(() => signal.throwIfAborted(), { code: 'LOCK_LOST', reason: 'unconfirmed' });
        assert.equal(lease.validForMs, 0);
      } finally {
        away = false;
        await mend?.();
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
    title: 'a waiter that loses sight of the store for a while still gets the lock',
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      let away = false;
      const holder = await (await stage.client()).locks.lock(name).acquire();
      const traffic = new Traffic();
      const { locks } = await stage.client({
        wrap: (backend) =>
          traffic.wrap(
            aroundCalls(backend, async (sent, send) => {
              if (away) throw new NoReply(sent);
              const answer = await send();
              // What was under way when the store went away is never heard of.
              if (away) throw new NoReply(sent);
              return answer;
            }),
          ),
      });
      const waiting = locks.lock(name).acquire({ waitMs: 20 * slackMs + 4 * idleGapMs });
      const waits = watch(waiting);
      await stage.until('it waits', () => traffic.answersTo('attempt') > 0);
      away = true;
      await holder.release();
      await stage.sleep(slackMs / 2);
      assert.equal(waits.settled, false);
      away = false;
      await stage.until('it is granted', () => waits.settled, 1_000 + idleGapMs + 2 * slackMs);
      await (await waiting).release();
    },
  },
];
