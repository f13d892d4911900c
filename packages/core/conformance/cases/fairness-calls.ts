import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { fifo, needs } from '../needs.ts';
import { watch } from '../waiter.ts';

const CALLS = 16;

export const fairnessCallCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/order-of-calls',
    clause: '§7.1',
    title:
      'acquires that a client calls in one turn are served in the order of the calls, on a free lock and on a held one',
    ...needs(fifo),
    async run(context) {
      const { locks } = await context.client();
      for (const isHeld of [false, true]) {
        const name = context.name();
        const holder = isHeld ? await (await context.client()).locks.lock(name).acquire() : undefined;
        const served: number[] = [];
        const turns = Array.from({ length: CALLS }, async (_, call) => {
          const lease = await locks.lock(name).acquire({ waitMs: 60 * context.timing.slackMs });
          served.push(call);
          await lease.release();
        });
        for (const turn of turns) watch(turn);
        await holder?.release();
        await Promise.all(turns);
        const calls = turns.map((_, call) => call);
        assert.deepEqual(served, calls, isHeld ? 'behind a holder' : 'on a free lock');
      }
    },
  },
];
