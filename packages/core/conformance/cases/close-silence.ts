import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import { behindProxies } from '../behind-proxies.ts';
import type { ConformanceCase } from '../case.ts';
import { needs, wire } from '../needs.ts';
import { holdersOf } from '../raw.ts';
import { watch } from '../waiter.ts';

const CLOSE_MS = 3_000;

export const closeSilenceCases: readonly ConformanceCase[] = [
  {
    id: 'close/settles-beside-a-silent-store',
    clause: '§12.7',
    title:
      'close of a manager that holds two leases and waits for a third settles within 3 s beside a silent store',
    ...needs(wire),
    async run(context) {
      const { locks: others } = await context.client({ ttlMs: context.inSteps(60_000) });
      const name = context.name('held');
      const held = await others.lock(name).acquire();
      const { backend, locks, proxies } = await behindProxies(context);
      const names = [context.name('first'), context.name('second')];
      for (const each of names) await locks.lock(each).acquire({ ttlMs: context.inSteps(60_000) });
      for (const each of names) assert.equal((await holdersOf(backend, each)).length, 1);
      const waiting = locks.lock(name).acquire({ waitMs: 60_000 });
      watch(waiting);
      await context.sleep(context.timing.slackMs / 2);
      for (const proxy of proxies) proxy.blackhole();
      const closedAt = performance.now();
      const failed = await locks.close().then(
        () => undefined,
        (error: unknown) => error,
      );
      const tookMs = performance.now() - closedAt;
      const { slackMs } = context.timing;
      // The time for which the event loop of a busy machine stands still is not counted by core.
      assert.ok(tookMs < CLOSE_MS + 3 * slackMs, `close took ${Math.round(tookMs)} ms`);
      assert.ok(failed === undefined || isLockError(failed, 'LOCK_BACKEND'), String(failed));
      await assert.rejects(waiting, { code: 'LOCK_CLOSED' });
      await held.release();
    },
  },
];
