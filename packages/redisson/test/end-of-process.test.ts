import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RedisCluster, RedisServer } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { libraries, startCluster, startRedis } from './setup.ts';

const SCRIPT = fileURLToPath(new URL('fixtures/contended-once.ts', import.meta.url));

let redis: RedisServer;
let cluster: RedisCluster;

beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerMaster: 0 })]);
});
afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

describe.each(libraries)('on %s', (library) => {
  it.each(['single', 'cluster'])(
    'a process whose locks stay open ends with its client (%s)',
    async (kind) => {
      const ports = (kind === 'cluster' ? cluster.nodes : [redis]).map(({ port }) => port).join();
      // A process that does not end is killed, which rejects.
      const ended = await promisify(execFile)(process.execPath, [SCRIPT, library, kind, ports], {
        timeout: 20_000,
      });
      expect(ended.stdout).toBe('quit');
    },
  );
});
