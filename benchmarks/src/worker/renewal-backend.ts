// The module that a renewal thread loads, for `bench renewal-thread`.
import { redisBackend } from '@locks/redis-ioredis';
import { Redis } from 'ioredis';

export default function makeBackend(): ReturnType<typeof redisBackend> {
  return redisBackend(new Redis(process.env['REDIS_URL'] as string));
}
