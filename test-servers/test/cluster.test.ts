import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisCluster, slotOf, startCluster } from '../src/index.ts';

describe('slotOf', () => {
  it('agrees with the server, hash tags included', async () => {
    const keys = ['', 'a', '123456789', '{user}:1', 'x{}y', 'x{{a}}', 'ä{ö}', '}{a}{b}'];
    const node = cluster.nodes[0];
    for (const key of keys) expect(await node?.command('CLUSTER', 'KEYSLOT', key), key).toBe(slotOf(key));
  });
});

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
});

afterAll(async () => {
  await cluster.stop();
});

describe('a cluster', () => {
  it('serves every slot, with a replica for each master', async () => {
    const views = await cluster.topology();
    expect(views.map(({ role }) => role).sort()).toEqual([
      'master',
      'master',
      'master',
      'replica',
      'replica',
      'replica',
    ]);
    for (const master of cluster.nodes.slice(0, 3)) expect(await cluster.replicasOf(master)).toHaveLength(1);
    expect(cluster.roots).toHaveLength(6);
    const owner = await cluster.slotOwner(slotOf('a'));
    expect(await owner.command('SET', 'a', 1)).toBe('OK');
  });

  it('migrates a slot, with a moment in which its keys are on both sides', async () => {
    const slot = slotOf('{job}');
    const source = await cluster.slotOwner(slot);
    const target = cluster.nodes.slice(0, 3).find((node) => node !== source);
    if (!target) throw new Error('no target');
    await source.command('MSET', '{job}:1', 1, '{job}:2', 2);
    const seen: string[] = [];
    await cluster.migrateSlot(slot, target, {
      first: (key) => key === '{job}:1',
      beforeKeys: async () => {
        seen.push('before');
        expect(await source.command('MGET', '{job}:1', '{job}:2')).toEqual(['1', '2']);
      },
      between: async () => {
        seen.push('between');
        await expect(source.command('GET', '{job}:1')).rejects.toMatchObject({ code: 'ASK' });
        expect(await source.command('GET', '{job}:2')).toBe('2');
        await expect(source.command('MGET', '{job}:1', '{job}:2')).rejects.toMatchObject({
          code: 'TRYAGAIN',
        });
      },
      afterKeys: async () => {
        seen.push('after');
        await expect(source.command('GET', '{job}:2')).rejects.toMatchObject({ code: 'ASK' });
      },
    });
    expect(seen).toEqual(['before', 'between', 'after']);
    expect(await cluster.slotOwner(slot)).toBe(target);
    expect(await target.command('MGET', '{job}:1', '{job}:2')).toEqual(['1', '2']);
    await expect(source.command('GET', '{job}:1')).rejects.toMatchObject({ code: 'MOVED' });
  });

  it('completes a migration whose hook throws', async () => {
    const slot = slotOf('{other}');
    const source = await cluster.slotOwner(slot);
    const target = cluster.nodes.slice(0, 3).find((node) => node !== source);
    if (!target) throw new Error('no target');
    await source.command('SET', '{other}', 1);
    const between = () => Promise.reject(new Error('from the hook'));
    await expect(cluster.migrateSlot(slot, target, { between })).rejects.toThrow('from the hook');
    expect(await target.command('GET', '{other}')).toBe('1');
  });

  it('promotes the replica of a killed master', async () => {
    const slot = slotOf('a');
    const old = await cluster.slotOwner(slot);
    const [replica] = await cluster.replicasOf(old);
    await old.kill();
    expect(await cluster.waitForNewOwner(slot, old.port)).toBe(replica);
    await old.restart();
    await cluster.waitUntilReady();
    expect(await cluster.replicasOf(replica ?? old)).toEqual([old]);
  });
});
