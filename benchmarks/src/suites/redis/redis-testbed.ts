import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { openTestbed, type Testbed, type TestbedServer } from '../../conduct/testbed.ts';
import { redisMeter } from '../../measure/redis-meter.ts';

/** A Redis and the connection that watches it. */
export interface RedisTestbedServer extends TestbedServer {
  readonly control: Redis;
}

export type RedisTestbed = Testbed<RedisTestbedServer>;

/** A private server, or the one of `REDIS_URL`, which is left as it is. */
export async function openRedisStage(): Promise<RedisTestbed> {
  const given = process.env['REDIS_URL'];
  return given ? await openTestbed(() => watched(given), 'REDIS_URL') : await openTestbed(openRedis);
}

export async function openRedis(): Promise<RedisTestbedServer> {
  const server = await startRedis();
  return await watched(server.url, () => server.stop());
}

async function watched(url: string, stop = async (): Promise<void> => {}): Promise<RedisTestbedServer> {
  const control = new Redis(url);
  const version = /^redis_version:(\S+)/m.exec(await control.info('server'))?.[1] ?? 'unknown';
  return {
    url,
    control,
    meter: redisMeter(control),
    async storedBytes() {
      return Number(/^used_memory:(\d+)/m.exec(await control.info('memory'))?.[1]);
    },
    versions: { 'redis-server': version },
    async stop() {
      control.disconnect();
      await stop();
    },
  };
}
