import assert from 'node:assert/strict';
import { type ConformanceCase, needsProcesses, processesAreApart } from '../case.ts';
import { assertExclusive } from '../history.ts';

export const exclusionCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/second-attempt-is-contended',
    clause: '§11.1',
    title: 'while one client holds, another gets nothing; after the release it does',
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const lease = await first.locks.lock(name).acquire();
      assert.equal(await second.locks.lock(name).tryAcquire(), undefined);
      assert.equal(await first.locks.lock(name).tryAcquire(), undefined);
      await lease.release();
      const next = await second.locks.lock(name).tryAcquire();
      assert.ok(next, 'free, and not granted');
      await next.release();
    },
  },
  {
    id: 'exclusion/three-processes-never-overlap',
    clause: '§11.1',
    title: 'three processes take turns in the critical section',
    missing: needsProcesses,
    refused: processesAreApart,
    async run(stage) {
      const name = stage.name();
      const children = await Promise.all([stage.child(), stage.child(), stage.child()]);
      const stays = await Promise.all(
        children.map((child, index) => child.contend(name, `process ${index}`, { rounds: 30, stayMs: 1, waitMs: 30_000 })),
      );
      assert.equal(stays.flat().length, 90);
      assertExclusive(stays.flat(), stage.seed);
    },
  },
];
