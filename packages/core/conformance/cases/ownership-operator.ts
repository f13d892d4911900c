import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { forceRelease, list, needs } from '../needs.ts';
import { holdersOf } from '../raw.ts';

/** Cases about the operator's calls: inspect, list and forceRelease. */
export const ownershipOperatorCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/inspect-shows-the-holder',
    clause: '§14.1',
    title: 'inspect shows the holder with label, mode, age and token, and nobody after the release',
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
      assert.deepEqual(await second.locks.inspect(name), { name, holders: [], waiters: [] });
      const lease = await first.locks.lock(name).acquire({ label: 'worker 7, “blue”' });
      const { holders } = await second.locks.inspect(name);
      assert.equal(holders.length, 1);
      assert.equal(holders[0]?.acquisitionId, lease.acquisitionId);
      assert.equal(holders[0]?.label, 'worker 7, “blue”');
      assert.deepEqual(holders[0]?.mode, { kind: 'exclusive' });
      assert.equal(holders[0]?.fencingToken, lease.fencingToken);
      assert.ok((holders[0]?.heldForMs ?? 0) >= 0);
      await lease.release();
      assert.deepEqual(await second.locks.inspect(name), { name, holders: [], waiters: [] });
    },
  },
  {
    id: 'ownership/answers-as-json',
    clause: '§14.5',
    title: 'the answers to an operator can be written as JSON, with the token as a decimal string',
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client();
      const lease = await locks.lock(name).acquire();
      assert.equal(await locks.isLocked(name), true);
      const token = lease.fencingToken?.toString();
      const tokenOf = (answer: unknown): unknown =>
        (JSON.parse(JSON.stringify(answer)) as { readonly fencingToken?: unknown } | undefined)?.fencingToken;
      assert.equal(tokenOf((await locks.inspect(name)).holders[0]), token);
      assert.equal(tokenOf((await locks.lock(name).inspect()).holders[0]), token);
      assert.equal(tokenOf(lease), token);
      if (backend.list !== undefined) {
        for await (const { holders } of locks.list(name)) assert.equal(tokenOf(holders[0]), token);
      }
      if (backend.forceRelease === undefined) await lease.release();
      else assert.equal(tokenOf((await locks.forceRelease(name))[0]), token);
      assert.equal(await locks.isLocked(name), false);
    },
  },
  {
    id: 'ownership/list-shows-the-live',
    clause: '§14.2',
    title: 'list gives exactly those resources with the prefix that are held or waited for',
    ...needs(list),
    async run(context) {
      const prefix = `${context.name()}%_*?[é`;
      const { locks } = await context.client();
      const listed = async (): Promise<string[]> => {
        const names: string[] = [];
        for await (const { name } of locks.list(prefix)) names.push(name);
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
    title: 'forceRelease ends the hold of any client, and gives its former holder',
    ...needs(forceRelease),
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
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
    id: 'ownership/misread-force-release',
    clause: '§13.3',
    title: 'forceRelease with a misspelt option, or with an id in place of the options, ends nothing',
    ...needs(forceRelease),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const lease = await locks.lock(name).acquire();
      for (const options of [{ aquisitionId: 'somebody-else' }, 'somebody-else', ['somebody-else'], null]) {
        const released = locks.forceRelease(name, options as { acquisitionId?: string });
        await assert.rejects(released, { code: 'LOCK_INVALID_ARGUMENT' }, JSON.stringify(options));
      }
      await lease.renew();
      lease.assertValid();
      await lease.release();
    },
  },
  {
    id: 'ownership/force-release-of-one-acquisition',
    clause: '§14.3',
    title: 'forceRelease with an acquisition id ends only that acquisition',
    ...needs(forceRelease),
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
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
