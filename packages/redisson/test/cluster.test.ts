import { call, type RedisCluster, request, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterOpeners, libraries, startCluster } from './setup.ts';

let cluster: RedisCluster;
let count = 0;

beforeAll(async () => {
  cluster = await startCluster({ replicasPerMaster: 0 });
});
afterAll(() => cluster.stop());

const everywhere = async (...command: readonly string[]): Promise<string> => {
  const [name = '', ...args] = command;
  return JSON.stringify(await Promise.all(cluster.nodes.map((node) => node.command(name, ...args))));
};

describe.each(libraries)('a cluster on %s', (library) => {
  const open = clusterOpeners[library];

  it.each([
    ['auto', 'SHARDCHANNELS'],
    ['off', 'CHANNELS'],
  ] as const)('wakes over its channels, sharded mode %s', async (shardedSubscriptionMode, kind) => {
    const options = { shardedSubscriptionMode, maxPollMs: 60_000, fencing: true };
    await using a = await open(cluster.nodes, options);
    await using b = await open(cluster.nodes, options);
    // Names of all masters.
    for (let round = 0; round < 6; round += 1) {
      const name = `wake ${++count}`;
      const held = await a.take(name);
      let { turn } = await b.queue(request(name));
      expect(await turn).toBeUndefined();
      await waitUntil(async () => (await everywhere('PUBSUB', kind)).includes(`{${name}}`), {
        what: 'a waiter that listens',
      });
      ({ turn } = await b.queue(request(name)));
      expect(await a.backend.release(held, call)).toBe('released');
      expect(await turn).toBeUndefined();
      expect((await b.take(name)).fencingToken).toBe(2n);
    }
  });

  it('renews leases of all slots at once', async () => {
    await using a = await open(cluster.nodes);
    const names = Array.from({ length: 20 }, () => `renew ${++count}`);
    const grants = await Promise.all(names.map((name) => a.take(name)));
    const statuses = await a.backend.renew(
      grants.map((grant) => ({ grant, ttlMs: 60_000 })),
      call,
    );
    expect(statuses).toEqual(names.map(() => ({ status: 'held' })));
  });

  it('refuses names whose braces put lock and channel into two slots, and takes hash tags', async () => {
    await using a = await open(cluster.nodes);
    const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
    for (const name of ['a{b', 'a}b', '{}x'])
      await expect(a.backend.attempt(request(name), true, call)).rejects.toEqual(invalid);
    for (const name of ['{shop}:a', 'b:{shop}', 'plain', '{{x}y'])
      expect(await a.backend.release(await a.take(name), call)).toBe('released');
  });
});
