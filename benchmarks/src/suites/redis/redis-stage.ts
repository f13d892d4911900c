import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { openStage, type Stage, type StageServer } from '../../conduct/stage.ts';
import { redisMeter } from '../../measure/redis-meter.ts';

/** A Redis and the connection that watches it. */
export interface RedisStageServer extends StageServer {
  readonly control: Redis;
}

export type RedisStage = Stage<RedisStageServer>;

/** A private server, or the one of `REDIS_URL`, which is left as it is. */
export async function openRedisStage(): Promise<RedisStage> {
  const given = process.env['REDIS_URL'];
  return given ? await openStage(() => watched(given), 'REDIS_URL') : await openStage(openRedis);
}

export async function openRedis(): Promise<RedisStageServer> {
  const server = await startRedis();
  return await watched(server.url, () => server.stop());
}

async function watched(url: string, stop = async (): Promise<void> => {}): Promise<RedisStageServer> {
  const control = new Redis(url);
  const version = /^redis_version:(\S+)/m.exec(await control.info('server'))?.[1] ?? 'unknown';
  return {
    url,
    control,
    meter: redisMeter(control),
    versions: { 'redis-server': version },
    async stop() {
      control.disconnect();
      await stop();
    },
  };
}
