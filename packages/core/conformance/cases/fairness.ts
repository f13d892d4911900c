import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, enter, type CriticalSection } from '../critical-section.ts';
import { fifo, needs, processes, strictOrder, waiters } from '../needs.ts';
import { roundsUpTo } from '../rounds.ts';
import { startWaiting, watch } from '../waiter.ts';

export const fairnessCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/first-come-first-served',
    clause: '§7.1',
    title: 'eight waiters of several clients are served in the order in which they came',
    ...needs(fifo),
    async run(context) {
      const name = context.name();
      const holder = await (await context.client()).locks.lock(name).acquire();
      const served: number[] = [];
      const all: Promise<void>[] = [];
      for (let position = 0; position < 8; position += 1) {
        const { lease } = await startWaiting(context, name, { waitMs: 20 * context.timing.slackMs });
        const turn = lease.then((granted) => {
          served.push(position);
          return granted.release();
        });
        watch(turn);
        all.push(turn);
      }
      await holder.release();
      await Promise.all(all);
      assert.deepEqual(served, [0, 1, 2, 3, 4, 5, 6, 7]);
    },
  },
  {
    id: 'fairness/order-over-three-processes',
    clause: '§7.1',
    title: 'six waiters in three processes are served in the order in which they came',
    ...needs(processes, fifo, strictOrder, waiters),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const holder = await locks.lock(name).acquire();
      const children = await Promise.all([context.child(), context.child(), context.child()]);
      const turns: Promise<readonly CriticalSection[]>[] = [];
      for (const [position, child] of [...children, ...children].entries()) {
        const options = { rounds: 1, holdMs: 2, waitMs: 20 * context.timing.slackMs };
        const turn = child.contend(name, `position ${position}`, options);
        watch(turn);
        turns.push(turn);
        await context.untilWaiting(locks, name, position + 1);
      }
      await holder.release();
      const sections = (await Promise.all(turns)).flat().sort((a, b) => a.enteredAt - b.enteredAt);
      assertExclusive(sections, context.seed);
      assert.deepEqual(
        sections.map(({ who }) => who.slice(0, 10)),
        [0, 1, 2, 3, 4, 5].map((position) => `position ${position}`),
      );
    },
  },
  {
    id: 'fairness/newcomers-do-not-overtake',
    clause: '§7.4',
    title: 'a client that comes when the lock is freed, to try or to wait, is granted after the waiters',
    ...needs(fifo),
    async run(context) {
      const name = context.name();
      const newcomer = (await context.client()).locks.lock(name);
      for (let round = 0; round < 6; round += 1) {
        const holder = await (await context.client()).locks.lock(name).acquire();
        const waiter = await startWaiting(context, name, { waitMs: 20 * context.timing.slackMs });
        const order: string[] = [];
        let leave: () => void = () => {};
        const triesAreOver = new Promise<void>((resolve) => (leave = resolve));
        const waited = waiter.lease.then(async (lease) => {
          order.push('waiter');
          await triesAreOver;
          await lease.release();
        });
        watch(waited);
        const released = holder.release();
        let tried = newcomer.tryAcquire();
        const came = newcomer.acquire({ waitMs: 20 * context.timing.slackMs }).then(async (lease) => {
          order.push('newcomer');
          await lease.release();
        });
        watch(came);
        do {
          assert.ok((await tried) === undefined, `round ${round}: a try overtook a waiter`);
          tried = newcomer.tryAcquire();
          await context.sleep(1);
        } while (waiter.settled() === undefined);
        assert.ok((await tried) === undefined, `round ${round}: a try overtook a waiter`);
        leave();
        await Promise.all([released, waited, came]);
        assert.deepEqual(order, ['waiter', 'newcomer'], `round ${round}`);
      }
    },
  },
  {
    id: 'fairness/turns-are-shared',
    clause: '§7.1',
    title: 'of six clients that take the lock repeatedly, none is more than three turns ahead of another',
    ...needs(fifo),
    async run(context) {
      const name = context.name();
      const gate = await (await context.client()).locks.lock(name).acquire();
      const sections: CriticalSection[] = [];
      const startedAt = performance.now();
      const contenders = [];
      for (let who = 0; who < 6; who += 1) {
        const first = await startWaiting(context, name, { waitMs: 20 * context.timing.slackMs });
        const contend = async (): Promise<void> => {
          const lock = first.locks.lock(name);
          for (const round of roundsUpTo(8, startedAt)) {
            const lease =
              round === 0 ? await first.lease : await lock.acquire({ waitMs: 20 * context.timing.slackMs });
            sections.push(await enter(lease, `${who}`, () => context.sleep(2)));
          }
        };
        contenders.push(contend());
      }
      for (const contender of contenders) watch(contender);
      await gate.release();
      await Promise.all(contenders);
      assertExclusive(sections, context.seed);
      const turns = new Map<string, number>();
      for (const { who } of sections) {
        turns.set(who, (turns.get(who) ?? 0) + 1);
        const counts = [0, 1, 2, 3, 4, 5].map((other) => turns.get(`${other}`) ?? 0);
        assert.ok(
          Math.max(...counts) - Math.min(...counts) <= 3,
          `turns so far: ${counts.join(' ')} (seed ${context.seed})`,
        );
      }
    },
  },
];
