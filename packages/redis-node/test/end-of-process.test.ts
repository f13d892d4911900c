import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';

const script = fileURLToPath(new URL('fixtures/contended-once.ts', import.meta.url));
let redis: RedisServer;
let cluster: RedisCluster;

beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerMaster: 0 })]);
});
afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

it.each(['single', 'cluster', 'replicas'])(
  'a process whose locks stay open ends with its client (%s)',
  async (kind) => {
    const nodes = kind === 'cluster' ? cluster.nodes : [redis];
    const ports = nodes.map(({ port }) => port).join();
    // A process that does not end is killed, which rejects.
    const ended = await promisify(execFile)(process.execPath, [script, kind, ports], { timeout: 20_000 });
    expect(ended.stdout).toBe('quit');
  },
);
