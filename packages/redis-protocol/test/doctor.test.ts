import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { examineRedisThrough } from '../src/doctor.ts';
import { SERVER_VERSIONS } from '../src/server-versions.ts';
import { TestPort } from './test-port.ts';

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

it('redis/version: the server is older than what locks need', async () => {
  const before = SERVER_VERSIONS.redis;
  const version = String((await redis.info('server'))['redis_version']);
  const well = { store: 'redis', version, findings: [] };
  expect(await examineRedisThrough(new TestPort(client))).toMatchObject(well);
  SERVER_VERSIONS.redis = { oldest: '99.1', tested: '99.1' };
  try {
    const { findings } = await examineRedisThrough(new TestPort(client));
    expect(findings).toMatchObject([{ id: 'redis/version', severity: 'error' }]);
  } finally {
    SERVER_VERSIONS.redis = before;
  }
});

it('explains errors by their text, and warnings by their code alone', async () => {
  const { explain } = await examineRedisThrough(new TestPort(client));
  const refused = new Error('NOPERM this user has no permissions to run the command');
  expect(explain?.(new Error('the lock failed', { cause: refused }))).toMatchObject({ id: 'redis/acl' });
  const warned = (code: string): unknown => explain?.(Object.assign(new Error(refused.message), { code }));
  expect(warned('LOCKS_REDIS_CHANNEL')).toMatchObject({ id: 'redis/channel', severity: 'warning' });
  expect(warned('LOCKS_REDIS_ANOTHER')).toBeUndefined();
  expect(explain?.(new Error('another'))).toBeUndefined();
});
