import assert from 'node:assert/strict';
import { aroundCalls } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { openCall } from '../raw.ts';

const TOGETHER = 30;

export const waitingManyCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/one-look-up-for-all',
    clause: '§7.6',
    title:
      'waiters of one resource and process that time out together share one inspect call at a time for the name of the holder',
    async run(context) {
      const name = context.name();
      let underWay = 0;
      let most = 0;
      const { locks } = await context.client({
        wrap: (backend) =>
          aroundCalls(backend, async (sent, send) => {
            if (sent !== 'inspect') return send();
            underWay += 1;
            most = Math.max(most, underWay);
            try {
              return await send();
            } finally {
              underWay -= 1;
            }
          }),
      });
      const { locks: others } = await context.client();
      const holder = await others.lock(name).acquire({ label: 'the holder' });
      const waitMs = context.busyMs + context.timing.slackMs;
      const ends = await Promise.allSettled(
        Array.from({ length: TOGETHER }, () => locks.lock(name).acquire({ waitMs })),
      );
      for (const end of ends) assert.equal(end.status, 'rejected', 'a waiter was granted a held resource');
      assert.ok(most <= 1, `${most} inspect calls were under way at once`);
      await holder.release();
    },
  },
  {
    id: 'waiting/holders-without-waiters',
    clause: '§14.1',
    title: 'inspect without waiters shows the same holders',
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const holder = await locks.lock(name).acquire({ label: 'the holder' });
      const backend = await context.backend();
      const shown = async (options?: { readonly waiters: boolean }): Promise<string[]> => {
        const { holders } = await backend.inspect(name, openCall, options);
        return holders.map(({ acquisitionId, label }) => `${acquisitionId} ${label}`);
      };
      const all = await shown();
      assert.ok(all[0]?.startsWith(holder.acquisitionId), 'the holder is not shown');
      assert.deepEqual(await shown({ waiters: true }), all);
      assert.deepEqual(await shown({ waiters: false }), all);
      await holder.release();
    },
  },
];
