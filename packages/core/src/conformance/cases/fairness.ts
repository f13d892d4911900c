import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, machineNow, type Stay } from '../history.ts';
import { fifo, needs, processes, waiters } from '../needs.ts';
import { startWaiting, watch } from '../waiter.ts';

export const fairnessCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/first-come-first-served',
    clause: '§7.1',
    title: 'eight waiters of several clients are served in the order in which they came',
    ...needs(fifo),
    async run(stage) {
      const name = stage.name();
      const holder = await (await stage.client()).locks.lock(name).acquire();
      const served: number[] = [];
      const all: Promise<void>[] = [];
      for (let place = 0; place < 8; place += 1) {
        const { lease } = await startWaiting(stage, name, { waitMs: 20 * stage.timing.slackMs });
        const turn = lease.then((granted) => {
          served.push(place);
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
    ...needs(processes, fifo, waiters),
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
      const holder = await locks.lock(name).acquire();
      const children = await Promise.all([stage.child(), stage.child(), stage.child()]);
      const turns: Promise<readonly Stay[]>[] = [];
      for (const [place, child] of [...children, ...children].entries()) {
        const options = { rounds: 1, stayMs: 2, waitMs: 20 * stage.timing.slackMs };
        const turn = child.contend(name, `place ${place}`, options);
        watch(turn);
        turns.push(turn);
        await stage.untilWaiting(locks, name, place + 1);
      }
      await holder.release();
      const stays = (await Promise.all(turns)).flat().sort((a, b) => a.enteredAt - b.enteredAt);
      assertExclusive(stays, stage.seed);
      assert.deepEqual(
        stays.map(({ who }) => who.slice(0, 7)),
        [0, 1, 2, 3, 4, 5].map((place) => `place ${place}`),
      );
    },
  },
  {
    id: 'fairness/newcomers-do-not-overtake',
    clause: '§7.4',
    title: 'whoever comes when the lock is freed, to try or to wait, gets it after those who waited',
    ...needs(fifo),
    async run(stage) {
      const name = stage.name();
      const newcomer = (await stage.client()).locks.lock(name);
      for (let round = 0; round < 6; round += 1) {
        const holder = await (await stage.client()).locks.lock(name).acquire();
        const waiter = await startWaiting(stage, name, { waitMs: 20 * stage.timing.slackMs });
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
        const came = newcomer.acquire({ waitMs: 20 * stage.timing.slackMs }).then(async (lease) => {
          order.push('newcomer');
          await lease.release();
        });
        watch(came);
        do {
          assert.ok((await tried) === undefined, `round ${round}: a try overtook a waiter`);
          tried = newcomer.tryAcquire();
          await stage.sleep(1);
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
    title: 'of six who take the lock again and again, nobody is more than three turns ahead of another',
    ...needs(fifo),
    async run(stage) {
      const name = stage.name();
      const rounds = 8;
      const gate = await (await stage.client()).locks.lock(name).acquire();
      const stays: Stay[] = [];
      const contenders = [];
      for (let who = 0; who < 6; who += 1) {
        const first = await startWaiting(stage, name, { waitMs: 20 * stage.timing.slackMs });
        const contend = async (): Promise<void> => {
          const lock = first.locks.lock(name);
          for (
            let round = 0, lease = await first.lease;
            ;
            lease = await lock.acquire({ waitMs: 20 * stage.timing.slackMs })
          ) {
            const enteredAt = machineNow();
            await stage.sleep(2);
            stays.push({
              who: `${who}`,
              enteredAt,
              leftAt: machineNow(),
              token: lease.fencingToken?.toString(),
            });
            await lease.release();
            round += 1;
            if (round === rounds) return;
          }
        };
        contenders.push(contend());
      }
      for (const contender of contenders) watch(contender);
      await gate.release();
      await Promise.all(contenders);
      assertExclusive(stays, stage.seed);
      const turns = new Map<string, number>();
      for (const { who } of stays) {
        turns.set(who, (turns.get(who) ?? 0) + 1);
        const counts = [0, 1, 2, 3, 4, 5].map((other) => turns.get(`${other}`) ?? 0);
        assert.ok(
          Math.max(...counts) - Math.min(...counts) <= 3,
          `turns so far: ${counts.join(' ')} (seed ${stage.seed})`,
        );
      }
    },
  },
];
