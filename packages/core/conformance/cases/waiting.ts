import assert from 'node:assert/strict';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { isLockError, type LockError } from '../../src/errors.ts';
import { assertExclusive, machineNow, type CriticalSection } from '../critical-section.ts';
import { needs, waiters } from '../needs.ts';
import type { CaseContext } from '../case-context.ts';
import { granted, startWaiting, watch } from '../waiter.ts';

/** The number of hand-offs in the case about lost wake-ups; a slow store makes as many as the time allows. */
const HANDOFFS = 2_000;
const HANDOFFS_MS = 6_000;
const TICK_MS = 3;
/** The time limit of core's inspect call for the message of a timeout. */
const LOOK_UP_MS = 100;

export const waitingCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/granted-after-release',
    clause: '§7.3',
    title: 'a waiter gets the lock soon after its release, and not before',
    async run(context) {
      const { name, holder } = await held(context);
      const waiter = await startWaiting(context, name, { waitMs: 10 * context.timing.slackMs });
      await context.sleep(context.timing.slackMs / 4);
      assert.equal(waiter.settled(), undefined, 'the waiter was granted while another client holds');
      await holder.release();
      await (await granted(context, waiter)).release();
    },
  },
  {
    id: 'waiting/no-wake-up-is-lost',
    clause: '§7.3',
    title: `of up to ${HANDOFFS} hand-offs among sixteen waiters of four clients none is late, and no two holds overlap`,
    alone: true,
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const clients = await Promise.all([
        context.client(),
        context.client(),
        context.client(),
        context.client(),
      ]);
      const sections: CriticalSection[] = [];
      // Ticks of this process: while it stood still, nobody could enter, and no hand-off counts as late.
      let ticks = 0;
      const ticker = setInterval(() => (ticks += 1), TICK_MS);
      context.onEnd(async () => clearInterval(ticker));
      const late: number[] = [];
      let leftAtTick = 0;
      let begun = 0;
      const startedAt = performance.now();
      const goesOn = (): boolean => begun < HANDOFFS && performance.now() - startedAt < HANDOFFS_MS;
      const contend = async (who: number): Promise<void> => {
        const lock = clients[who % clients.length]?.locks.lock(name);
        while (lock !== undefined && goesOn()) {
          begun += 1;
          const lease = await lock.acquire({ waitMs: 20 * slackMs });
          const enteredAt = machineNow();
          const previous = sections.at(-1);
          if (
            previous !== undefined &&
            enteredAt - previous.leftAt > slackMs &&
            ticks - leftAtTick > slackMs / (4 * TICK_MS)
          ) {
            late.push(enteredAt - previous.leftAt);
          }
          // Every second critical section lasts a iteration of the event loop, in which other clients begin to wait.
          if (begun % 2 === 0) await new Promise(setImmediate);
          const token = lease.fencingToken?.toString();
          sections.push({ who: `waiter ${who}`, enteredAt, leftAt: machineNow(), token });
          leftAtTick = ticks;
          await lease.release();
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, who) => contend(who)));
      assertExclusive(sections, context.seed);
      assert.deepEqual(late, [], `hand-offs that came more than ${slackMs} ms after the release`);
    },
  },
  {
    id: 'waiting/ends-within-wait-ms',
    clause: '§7.5',
    title: 'a wait ends when waitMs is over, with LOCK_TIMEOUT that names the holder',
    async run(context) {
      const { name, holder } = await held(context, 'the one who holds');
      const { slackMs } = context.timing;
      const waitMs = slackMs * 2;
      const asks = context.stopwatch();
      await (await context.client()).locks.inspect(name);
      // Core does not name the holder where the store takes longer than core waits for that answer.
      let named = asks() > LOOK_UP_MS;
      // Core cannot ask for the holder either where this process stands still at the end of the wait.
      for (let tries = 0; tries < 8 && !named; tries += 1) {
        const elapsed = context.stopwatch();
        const waiter = await startWaiting(context, name, { waitMs });
        await assert.rejects(waiter.lease, (error: LockError) => {
          named = error.message.includes('the one who holds');
          return isLockError(error, 'LOCK_TIMEOUT') && error.lockName === name;
        });
        const waitedMs = waiter.settled() ?? Number.NaN;
        assert.ok(waitedMs >= waitMs - 1, `the acquire gave up after ${waitedMs} ms of ${waitMs}`);
        assert.ok(
          elapsed() <= waitMs + LOOK_UP_MS + 2 * slackMs,
          `the acquire gave up only after ${waitedMs} ms of ${waitMs}`,
        );
      }
      assert.ok(named, 'the timeout does not name the holder');
      await holder.release();
    },
  },
  {
    id: 'waiting/timeout-explains-nesting',
    clause: '§5.1',
    title:
      'a timeout says that another call of this process holds, and mentions nesting, when it is so, and only then',
    async run(context) {
      const name = context.name();
      const [mine, other] = [await context.client(), await context.client()];
      const holder = await mine.locks.lock(name).acquire();
      const waitMs = context.busyMs;
      await assert.rejects(mine.locks.lock(name).acquire({ waitMs }), {
        code: 'LOCK_TIMEOUT',
        message: /[Aa]nother call of this process.*within/,
      });
      await assert.rejects(
        other.locks.lock(name).acquire({ waitMs }),
        (error: { code?: string; message: string }) => {
          assert.equal(error.code, 'LOCK_TIMEOUT');
          assert.doesNotMatch(error.message, /within/);
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
    async run(context) {
      const { name, holder } = await held(context);
      const waiter = await startWaiting(context, name, { waitMs: context.busyMs });
      await assert.rejects(waiter.lease, { code: 'LOCK_TIMEOUT' });
      await context.until(
        'nobody waits',
        async () => (await waiter.locks.inspect(name)).waiters.length === 0,
      );
      await context.until('the abandon is answered', () => waiter.calls.answersTo('abandon') > 0);
      await holder.release();
      const next = await waiter.locks.lock(name).tryAcquire();
      assert.ok(next, 'the lock is free, and was not granted');
      await next.release();
    },
  },
  {
    id: 'waiting/zero-is-one-attempt',
    clause: '§7.4',
    title: 'tryAcquire and waitMs 0 make exactly one attempt, do not queue and do not wait',
    async run(context) {
      const { name, holder } = await held(context);
      const calls = new CallCounter();
      const enqueues: boolean[] = [];
      const { locks } = await context.client({
        wrap: (backend) =>
          calls.wrap(
            delegate(backend, {
              attempt: (request, enqueue, call) => {
                enqueues.push(enqueue);
                return backend.attempt(request, enqueue, call);
              },
            }),
          ),
      });
      assert.equal(await locks.lock(name).tryAcquire(), undefined);
      assert.deepEqual([calls.of('attempt'), calls.of('awaitTurn')], [1, 0]);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 0 }), { code: 'LOCK_CONTENDED' });
      assert.deepEqual([calls.of('attempt'), calls.of('awaitTurn')], [2, 0]);
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
    title: 'with waitMs Infinity an acquire waits until the release, however long',
    async run(context) {
      const { name, holder } = await held(context);
      const waiter = await startWaiting(context, name, { waitMs: Number.POSITIVE_INFINITY });
      await context.sleep(context.timing.slackMs * 2);
      assert.equal(waiter.settled(), undefined);
      await holder.release();
      await (await granted(context, waiter)).release();
    },
  },
  {
    id: 'waiting/waiters-are-shown-in-order',
    clause: '§14.1',
    title: 'inspect shows the waiters with their labels, in the order in which they came',
    ...needs(waiters),
    async run(context) {
      const { name, holder } = await held(context, 'the holder');
      const queue = [];
      for (const label of ['first', 'second', 'third']) {
        queue.push(await startWaiting(context, name, { label, waitMs: 20 * context.timing.slackMs }));
      }
      const state = await (await context.client()).locks.inspect(name);
      assert.deepEqual(
        state.holders.map(({ label }) => label),
        ['the holder'],
      );
      assert.deepEqual(
        state.waiters.map(({ label }) => label),
        ['first', 'second', 'third'],
      );
      assert.equal(new Set(state.waiters.map(({ acquisitionId }) => acquisitionId)).size, 3);
      const all = watch(Promise.all(queue.map(async ({ lease }) => (await lease).release())));
      await holder.release();
      await context.until('all waiters had their turn', () => all.settled);
    },
  },
  {
    id: 'waiting/keeps-the-process-alive',
    clause: '§4.5',
    title: 'a waiting acquire keeps its process alive; a lease with automatic renewal does not',
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const child = await context.child();
      // The first acquire may open connections that the backend keeps.
      const first = await child.acquire(context.name());
      await child.release(first.id);
      let idle = await child.timers();
      for (let sample = 0; sample < 5; sample += 1) {
        await context.sleep(slackMs / 20);
        idle = Math.min(idle, await child.timers());
      }
      const lease = await child.acquire(name, { ttlMs: context.livingTtlMs });
      await context.until(
        'no timer of the lease keeps the process alive',
        async () => (await child.timers()) <= idle,
        slackMs,
      );
      const waiting = child.acquire(name, { waitMs: 20 * slackMs });
      const waits = watch(waiting);
      await context.until(
        'the wait keeps the process alive',
        async () => (await child.timers()) > idle,
        slackMs,
      );
      assert.equal(waits.settled, false);
      await child.release(lease.id);
      await child.release((await waiting).id);
      await context.until(
        'nothing keeps the process alive',
        async () => (await child.timers()) <= idle,
        slackMs,
      );
    },
  },
];

/** A resource that is held by a client of its own. */
async function held(context: CaseContext, label = 'holder') {
  const name = context.name();
  const { locks } = await context.client();
  return { name, holder: await locks.lock(name).acquire({ label }) };
}
