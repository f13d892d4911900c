import {
  call,
  Participant,
  request,
  type SentinelDeployment,
  startCluster,
  startSentinel,
  waitUntil,
} from '@locks/test-servers';
import { testCluster } from '@locks/test-servers/redis-clients/cluster-tests';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';
import {
  ioredisClusterParticipant,
  ioredisSentinelParticipant,
  nodeRedisClusterParticipant,
  nodeRedisSentinelParticipant,
} from './setup.ts';

let count = 0;
const fresh = () => `resource-${++count}`;

testCluster('ioredis', ioredisClusterParticipant, ioredisClusterParticipant);
testCluster('node-redis', nodeRedisClusterParticipant, nodeRedisClusterParticipant);

// node-redis keeps the client of a node whose connection broke in its handshake, though it is closed.
describe('a cluster client of node-redis whose clients of nodes are closed', () => {
  it('connects anew, for locks and for lists', async () => {
    await using cluster = await startCluster({ masters: 3, replicasPerMaster: 0 });
    const client = createCluster({
      rootNodes: cluster.roots.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
    });
    client.on('error', () => undefined);
    await client.connect();
    await using participant = new Participant(redisBackend(client), () => client.destroy());
    const { backend } = participant;
    const names = Array.from({ length: 12 }, fresh);
    const closeNodes = async (): Promise<void> => {
      for (const master of client.masters) (await client.nodeClient(master)).destroy();
    };
    await closeNodes();
    await Promise.all(
      names.map((name) =>
        waitUntil(() => participant.take(name), { what: `the grant of ${name}`, timeoutMs: 5_000 }),
      ),
    );
    await closeNodes();
    const listed: string[] = [];
    for await (const { name } of backend.list?.('resource-', call) ?? []) listed.push(name);
    expect(listed.sort()).toEqual([...names].sort());
  });
});

describe.each([
  ['ioredis', ioredisSentinelParticipant],
  ['node-redis', nodeRedisSentinelParticipant],
] as const)('Sentinel through %s', (_, open) => {
  let deployment: SentinelDeployment;

  beforeAll(async () => {
    deployment = await startSentinel({ replicas: 2, sentinels: 3, downAfterMs: 1000 });
  });
  afterAll(() => deployment?.stop());

  it('goes on after a failover: holders release, each waiter gets its turn', async () => {
    await using a = await open(deployment.sentinels, deployment.name);
    await using b = await open(deployment.sentinels, deployment.name);
    const name = fresh();
    const grant = await a.take(name, 60_000);
    const queued = [
      { who: b, ...(await b.queue(request(name))) },
      { who: a, ...(await a.queue(request(name))) },
    ];
    const master = await deployment.master();
    await master.command('WAIT', 2, 2000);
    await master.kill();
    await deployment.waitForNewMaster(master.port);
    await waitUntil(() => a.backend.release(grant, call).catch(() => undefined), {
      what: 'the release on the new master',
      timeoutMs: 15_000,
    });
    // Their order may change: who connects to the new master first is in its queue first.
    const next = await Promise.race(queued.map(async ({ who, turn }) => ({ who, got: await turn })));
    if (next.got === undefined) throw new Error('no grant');
    expect(next.got.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
    await next.who.backend.release(next.got, call);
    const tokens = await Promise.all(queued.map(async ({ turn }) => (await turn)?.fencingToken));
    expect(new Set(tokens).size).toBe(2);
  });
});
