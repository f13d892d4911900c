import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { openTestbed, type Testbed, type TestbedServer } from '../conduct/testbed.ts';
import { redisMeter } from '../measure/redis-meter.ts';
import type { Store } from './store.ts';

export const redisStore: Store = {
  id: 'redis',
  counting: '`MONITOR`: the commands that clients sent; not those inside scripts',
  start: () => startRedisServers(1),
};

/** Private servers; all but the locks of a quorum are on the first, and so are the counts. */
export async function startRedisServers(count: number): Promise<TestbedServer> {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
  return await watched(
    servers.map(({ url }) => url),
    servers,
    async () => void (await Promise.all(servers.map((server) => server.stop()))),
  );
}

/** A private server, or the one of `REDIS_URL`, which is left as it is. */
export async function openRedisTestbed(): Promise<Testbed> {
  const given = process.env['REDIS_URL'];
  return given ? await openTestbed(() => watched([given]), 'REDIS_URL') : await openTestbed(redisStore.start);
}

async function watched(
  urls: readonly string[],
  servers: readonly RedisServer[] = [],
  stop = async (): Promise<void> => {},
): Promise<TestbedServer> {
  const control = new Redis(urls[0] as string);
  const info = async (section: string, figure: RegExp): Promise<string> =>
    figure.exec(await control.info(section))?.[1] ?? 'unknown';
  return {
    url: urls.join(' '),
    meter: redisMeter(control),
    ...(servers[0] && { pid: servers[0].pid }),
    network: {
      addresses: servers,
      urlAt: (at) => at.map(({ host, port }) => `redis://${host}:${port}`).join(' '),
    },
    storedBytes: async () => Number(await info('memory', /^used_memory:(\d+)/m)),
    async *keys() {
      let cursor = '0';
      do {
        const [next, keys] = await control.scan(cursor, 'COUNT', 1000);
        yield* keys;
        cursor = next;
      } while (cursor !== '0');
    },
    versions: { 'redis-server': await info('server', /^redis_version:(\S+)/m) },
    async stop() {
      control.disconnect();
      await stop();
    },
  };
}
