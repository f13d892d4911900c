import { redisBackend } from '@locks/redis-ioredis';
import { Redis } from 'ioredis';

/** Makes the backend of a worker, and once more that of its renewal thread. */
export default () => redisBackend(new Redis(process.env['REDIS_URL'] ?? 'redis://localhost'));
