import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { forceRelease, list, needs } from '../needs.ts';
import { holdersOf } from '../raw.ts';

/** What an operator sees and does. */
export const ownershipOperatorCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/inspect-shows-the-holder',
    clause: '§14.1',
    title: 'inspect shows who holds, with label, mode, age and token, and nobody once it was released',
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      assert.deepEqual(await second.locks.inspect(name), { resource: name, holders: [], waiters: [] });
      const lease = await first.locks.lock(name).acquire({ label: 'worker 7, “blue”' });
      const { holders } = await second.locks.inspect(name);
      assert.equal(holders.length, 1);
      assert.equal(holders[0]?.acquisitionId, lease.acquisitionId);
      assert.equal(holders[0]?.label, 'worker 7, “blue”');
      assert.deepEqual(holders[0]?.mode, { kind: 'exclusive' });
      assert.equal(holders[0]?.fencingToken, lease.fencingToken);
      assert.ok((holders[0]?.heldForMs ?? 0) >= 0);
      await lease.release();
      assert.deepEqual(await second.locks.inspect(name), { resource: name, holders: [], waiters: [] });
    },
  },
  {
    id: 'ownership/list-shows-the-live',
    clause: '§14.2',
    title: 'list gives exactly the resources with the prefix that are held or waited for',
    ...needs(list),
    async run(stage) {
      const prefix = `${stage.name()}%_*?[é`;
      const { locks } = await stage.client();
      const listed = async (): Promise<string[]> => {
        const names: string[] = [];
        for await (const { resource } of locks.list(prefix)) names.push(resource);
        return names.sort();
      };
      assert.deepEqual(await listed(), []);
      const names = ['', ' 1', ' 2', ' 10', '\u0000'].map((suffix) => `${prefix}${suffix}`);
      const leases = await Promise.all(names.map((name) => locks.lock(name).acquire()));
      const outside = await locks.lock(prefix.slice(0, -1)).acquire();
      assert.deepEqual(await listed(), names.toSorted());
      await Promise.all(leases.slice(1).map((lease) => lease.release()));
      assert.deepEqual(await listed(), [prefix]);
      await Promise.all([leases[0]?.release(), outside.release()]);
      assert.deepEqual(await listed(), []);
    },
  },
  {
    id: 'ownership/force-release-frees',
    clause: '§14.3',
    title: 'forceRelease ends a hold whoever has it, and tells whose it was',
    ...needs(forceRelease),
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const lease = await first.locks.lock(name).acquire();
      const ended = await second.locks.forceRelease(name);
      assert.deepEqual(
        ended.map(({ acquisitionId }) => acquisitionId),
        [lease.acquisitionId],
      );
      assert.deepEqual(await second.locks.forceRelease(name), []);
      const next = await second.locks.lock(name).acquire();
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
      assert.deepEqual(await holdersOf(second.backend, name), [next.acquisitionId]);
      await next.release();
    },
  },
  {
    id: 'ownership/force-release-of-one-acquisition',
    clause: '§14.3',
    title: 'forceRelease with an acquisition id ends only that acquisition',
    ...needs(forceRelease),
    async run(stage) {
      const name = stage.name();
      const { backend, locks } = await stage.client();
      const lease = await locks.lock(name).acquire();
      assert.deepEqual(await locks.forceRelease(name, { acquisitionId: 'somebody-else' }), []);
      assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId]);
      const ended = await locks.forceRelease(name, { acquisitionId: lease.acquisitionId });
      assert.deepEqual(
        ended.map(({ acquisitionId }) => acquisitionId),
        [lease.acquisitionId],
      );
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
];
