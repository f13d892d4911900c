import assert from 'node:assert/strict';
import { Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { isLockError, type LockError } from '../../errors.ts';
import { assertExclusive, machineNow, type Stay } from '../history.ts';
import { needs, waiters } from '../needs.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, watch } from '../waiter.ts';

/** How many hand-offs the case about lost wake-ups makes. */
const HANDOFFS = 2_000;
const TICK_MS = 3;
/** Core looks the holder up for the message of a timeout: not longer than this. */
const LOOK_UP_MS = 100;

export const waitingCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/granted-after-release',
    clause: '§7.3',
    title: 'a waiter gets the lock soon after its release, and not before',
    async run(stage) {
      const { name, holder } = await held(stage);
      const waiter = await startWaiting(stage, name, { waitMs: 10 * stage.timing.slackMs });
      await stage.sleep(stage.timing.slackMs / 4);
      assert.equal(waiter.settled(), undefined, 'granted while another holds');
      await holder.release();
      await stage.until('the waiter is granted', () => waiter.settled() !== undefined, stage.timing.slackMs);
      await (await waiter.lease).release();
    },
  },
  {
    id: 'waiting/no-wake-up-is-lost',
    clause: '§7.3',
    title: `${HANDOFFS} hand-offs among sixteen waiters of four clients: none is late, no two overlap`,
    alone: true,
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const clients = await Promise.all([stage.client(), stage.client(), stage.client(), stage.client()]);
      const stays: Stay[] = [];
      // What this process itself was late by: while it stood still, nobody could enter.
      let ticks = 0;
      const ticker = setInterval(() => (ticks += 1), TICK_MS);
      stage.onEnd(async () => clearInterval(ticker));
      const late: number[] = [];
      let leftAtTick = 0;
      let begun = 0;
      const contend = async (who: number): Promise<void> => {
        const lock = clients[who % clients.length]?.locks.lock(name);
        while (lock !== undefined && begun < HANDOFFS) {
          begun += 1;
          const lease = await lock.acquire({ waitMs: 20 * slackMs });
          const enteredAt = machineNow();
          const previous = stays.at(-1);
          if (
            previous !== undefined &&
            enteredAt - previous.leftAt > slackMs &&
            ticks - leftAtTick > slackMs / (4 * TICK_MS)
          ) {
            late.push(enteredAt - previous.leftAt);
          }
          // Every second stay lasts a turn of the event loop, in which more of the others come to wait.
          if (begun % 2 === 0) await new Promise(setImmediate);
          const token = lease.fencingToken?.toString();
          stays.push({ who: `waiter ${who}`, enteredAt, leftAt: machineNow(), token });
          leftAtTick = ticks;
          await lease.release();
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, who) => contend(who)));
      assertExclusive(stays, stage.seed);
      assert.deepEqual(late, [], `hand-offs that came more than ${slackMs} ms after the release`);
    },
  },
  {
    id: 'waiting/ends-within-wait-ms',
    clause: '§7.5',
    title: 'a wait ends when waitMs is over, with LOCK_TIMEOUT that names the holder',
    async run(stage) {
      const { name, holder } = await held(stage, 'the one who holds');
      const { slackMs } = stage.timing;
      const waitMs = slackMs * 2;
      let named = false;
      // Where this process stands still in the last moments of the wait, there is no time to look who holds.
      for (let tries = 0; tries < 8 && !named; tries += 1) {
        const elapsed = stage.stopwatch();
        const waiter = await startWaiting(stage, name, { waitMs });
        await assert.rejects(waiter.lease, (error: LockError) => {
          named = error.message.includes('the one who holds');
          return isLockError(error, 'LOCK_TIMEOUT') && error.resource === name;
        });
        const waitedMs = waiter.settled() ?? Number.NaN;
        assert.ok(waitedMs >= waitMs - 1, `it gave up after ${waitedMs} ms of ${waitMs}`);
        assert.ok(
          elapsed() <= waitMs + LOOK_UP_MS + 2 * slackMs,
          `it gave up only after ${waitedMs} ms of ${waitMs}`,
        );
      }
      assert.ok(named, 'the timeout does not name the holder');
      await holder.release();
    },
  },
  {
    id: 'waiting/timeout-explains-nesting',
    clause: '§5.1',
    title: 'a timeout says so when the holder is of the same manager, and only then',
    async run(stage) {
      const name = stage.name();
      const [mine, other] = [await stage.client(), await stage.client()];
      const holder = await mine.locks.lock(name).acquire();
      const waitMs = stage.busyMs;
      await assert.rejects(mine.locks.lock(name).acquire({ waitMs }), {
        code: 'LOCK_TIMEOUT',
        message: /within.*reentrant/,
      });
      await assert.rejects(
        other.locks.lock(name).acquire({ waitMs }),
        (error: { code?: string; message: string }) => {
          assert.equal(error.code, 'LOCK_TIMEOUT');
          assert.doesNotMatch(error.message, /reentrant/);
          return true;
        },
      );
      await holder.release();
    },
  },
  {
    id: 'waiting/timeout-leaves-nothing',
    clause: '§7.2',
    title: 'a waiter that timed out stands in no queue and is never granted later',
    async run(stage) {
      const { name, holder } = await held(stage);
      const waiter = await startWaiting(stage, name, { waitMs: stage.busyMs });
      await assert.rejects(waiter.lease, { code: 'LOCK_TIMEOUT' });
      await stage.until('nobody waits', async () => (await waiter.locks.inspect(name)).waiters.length === 0);
      await stage.until('the abandon is answered', () => waiter.traffic.answersTo('abandon') > 0);
      await holder.release();
      const next = await waiter.locks.lock(name).tryAcquire();
      assert.ok(next, 'free, and granted to nobody who wants it');
      await next.release();
    },
  },
  {
    id: 'waiting/zero-is-one-attempt',
    clause: '§7.4',
    title: 'tryAcquire and waitMs 0 make exactly one attempt, do not queue and do not wait',
    async run(stage) {
      const { name, holder } = await held(stage);
      const traffic = new Traffic();
      const enqueues: boolean[] = [];
      const { locks } = await stage.client({
        wrap: (backend) =>
          traffic.wrap(
            delegate(backend, {
              attempt: (request, enqueue, call) => {
                enqueues.push(enqueue);
                return backend.attempt(request, enqueue, call);
              },
            }),
          ),
      });
      assert.equal(await locks.lock(name).tryAcquire(), undefined);
      assert.deepEqual([traffic.of('attempt'), traffic.of('awaitTurn')], [1, 0]);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 0 }), { code: 'LOCK_TIMEOUT' });
      assert.deepEqual([traffic.of('attempt'), traffic.of('awaitTurn')], [2, 0]);
      assert.deepEqual(enqueues, [false, false]);
      assert.deepEqual((await locks.inspect(name)).waiters, []);
      await holder.release();
      const free = await locks.lock(name).acquire({ waitMs: 0 });
      await free.release();
    },
  },
  {
    id: 'waiting/infinity-waits-until-released',
    clause: '§7.5',
    title: 'waitMs Infinity waits past every other limit until the release',
    async run(stage) {
      const { name, holder } = await held(stage);
      const waiter = await startWaiting(stage, name, { waitMs: Number.POSITIVE_INFINITY });
      await stage.sleep(stage.timing.slackMs * 2);
      assert.equal(waiter.settled(), undefined);
      await holder.release();
      await stage.until('the waiter is granted', () => waiter.settled() !== undefined, stage.timing.slackMs);
      await (await waiter.lease).release();
    },
  },
  {
    id: 'waiting/waiters-are-shown-in-order',
    clause: '§14.1',
    title: 'inspect shows who waits, in the order in which they came, with their labels',
    ...needs(waiters),
    async run(stage) {
      const { name, holder } = await held(stage, 'the holder');
      const line = [];
      for (const label of ['first', 'second', 'third']) {
        line.push(await startWaiting(stage, name, { label, waitMs: 20 * stage.timing.slackMs }));
      }
      const state = await (await stage.client()).locks.inspect(name);
      assert.deepEqual(
        state.holders.map(({ label }) => label),
        ['the holder'],
      );
      assert.deepEqual(
        state.waiters.map(({ label }) => label),
        ['first', 'second', 'third'],
      );
      assert.equal(new Set(state.waiters.map(({ acquisitionId }) => acquisitionId)).size, 3);
      const all = watch(Promise.all(line.map(async ({ lease }) => (await lease).release())));
      await holder.release();
      await stage.until('all had their turn', () => all.settled);
    },
  },
  {
    id: 'waiting/keeps-the-process-alive',
    clause: '§4.5',
    title: 'a waiting acquire keeps its process alive; a lease, though renewed, does not',
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const child = await stage.child();
      // The first acquire may open what the backend needs for good.
      const first = await child.acquire(stage.name());
      await child.release(first.id);
      let idle = await child.timers();
      for (let sample = 0; sample < 5; sample += 1) {
        await stage.sleep(slackMs / 20);
        idle = Math.min(idle, await child.timers());
      }
      const lease = await child.acquire(name, { ttlMs: stage.livingTtlMs });
      await stage.until(
        'no timer of the lease keeps the process alive',
        async () => (await child.timers()) <= idle,
        slackMs,
      );
      const waiting = child.acquire(name, { waitMs: 20 * slackMs });
      const waits = watch(waiting);
      await stage.until(
        'the wait keeps the process alive',
        async () => (await child.timers()) > idle,
        slackMs,
      );
      assert.equal(waits.settled, false);
      await child.release(lease.id);
      await child.release((await waiting).id);
      await stage.until(
        'nothing keeps the process alive',
        async () => (await child.timers()) <= idle,
        slackMs,
      );
    },
  },
];

/** A resource that a client of its own holds. */
async function held(stage: Stage, label = 'holder') {
  const name = stage.name();
  const { locks } = await stage.client();
  return { name, holder: await locks.lock(name).acquire({ label }) };
}
