import { examineRedis as examineGlide } from '@locks/redis-glide/doctor';
import { examineRedis as examineIoredis } from '@locks/redis-ioredis/doctor';
import { examineRedis as examineNodeRedis } from '@locks/redis-node/doctor';
import { startCluster, startRedis } from '@locks/test-servers';
import { expect, it, onTestFinished } from 'vitest';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { glideClient } from '../src/harnesses/redis/open-glide.ts';
import { ioredisClient } from '../src/harnesses/redis/open-ioredis.ts';
import { nodeRedisClient } from '../src/harnesses/redis/open-node-redis.ts';

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];

/** What each client finds; the clients stay open until the end of the test. */
async function diagnosesOf(address: RedisAddress): Promise<Record<string, unknown>> {
  const ioredis = ioredisClient(address);
  onTestFinished(() => ioredis.disconnect());
  const nodeRedis = nodeRedisClient(address);
  await nodeRedis.connect();
  onTestFinished(() => void nodeRedis.destroy());
  const glide = await glideClient(address);
  onTestFinished(() => glide.close());
  const seen = {
    'redis-ioredis': await examineIoredis(ioredis),
    'redis-node': await examineNodeRedis(nodeRedis as never),
    'redis-glide': await examineGlide(glide),
  };
  return Object.fromEntries(
    Object.entries(seen).map(([library, { store, version, findings }]) => [
      library,
      { store, version, ids: findings.map(({ id }) => id) },
    ]),
  );
}

function sameOfAll(diagnosis: object): unknown {
  return { 'redis-ioredis': diagnosis, 'redis-node': diagnosis, 'redis-glide': diagnosis };
}

it('clients of three libraries find the same on one server', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const { redis_version: version } = await redis.info('server');
  const seen = await diagnosesOf({ kind: 'standalone', url: redis.url });
  expect(seen).toEqual(sameOfAll({ store: 'redis', version, ids: ['redis/persistence'] }));
});

it('clients of three libraries examine each master of a cluster, and report once what several have', async () => {
  const cluster = await startCluster({ replicasPerMaster: 0, args: DURABLE });
  onTestFinished(() => cluster.stop());
  const [first, ...others] = cluster.nodes;
  const { redis_version: version } = (await first?.info('server')) ?? {};
  const address = { kind: 'cluster', roots: cluster.roots } as const;
  expect(await diagnosesOf(address)).toEqual(sameOfAll({ store: 'redis', version, ids: [] }));
  for (const node of others) await node.command('CONFIG', 'SET', 'appendfsync', 'no');
  const ids = ['redis/appendfsync'];
  expect(await diagnosesOf(address)).toEqual(sameOfAll({ store: 'redis', version, ids }));
}, 60_000);
