import { createHash } from 'node:crypto';
import { call, request } from '@locks/test-servers';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { functionLibrary } from '../src/index.ts';
import { participant } from './participant.ts';

useRedis();

it('names the missing right of a function as it does for a script', async () => {
  const rights = ['on', '>secret', '~*', '&*', '+@all', '-@scripting', '+fcall', '+function|load', '-set'];
  await redis.command('ACL', 'SETUSER', 'locker', ...rights);
  // Somebody else has marked the layout: this user would be refused already for that.
  await using other = participant(redis);
  await other.take('marked');
  const login = { username: 'locker', password: 'secret' };
  await using a = participant(redis, { functions: true }, login);
  const refused: unknown = await a.backend.attempt(request('a'), true, call).catch((error: unknown) => error);
  expect(String(refused)).toMatch(/can't run this command.*Grant \+SET/);
});

it('is loaded again by the next call after the server lost it', async () => {
  await using a = participant(redis, { functions: true });
  await a.backend.release(await a.take('b'), call);
  await redis.command('FUNCTION', 'FLUSH');
  await a.backend.release(await a.take('b'), call);
  expect(await redis.command('FUNCTION', 'LIST')).toHaveLength(1);
});

it('stands beside the library of another version', async () => {
  const other = functionLibrary().replaceAll(
    /locks_[0-9a-f]{16}/g,
    `locks_${createHash('sha1').update('x').digest('hex').slice(0, 16)}`,
  );
  const client = new Redis(redis.port, '127.0.0.1');
  await client.call('FUNCTION', 'LOAD', other);
  await using a = participant(redis, { functions: true });
  await a.backend.release(await a.take('c'), call);
  expect(await redis.command('FUNCTION', 'LIST')).toHaveLength(2);
  client.disconnect();
});
