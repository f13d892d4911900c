/** Fastify: one manager for the process on the server, health, and an end without work that is half done. */
import { createLocks, type FencedLockManager, isLockError } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { fastify } from 'fastify';
import { Redis } from 'ioredis';
import { sell } from './stock.ts';

declare module 'fastify' {
  interface FastifyInstance {
    readonly locks: FencedLockManager;
  }
}

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');
const app = fastify();
app.decorate('locks', createLocks(redisBackend(redis), { waitMs: 20_000 }));
// Fastify calls it when every request has been answered; work in the background has 20 s more.
app.addHook('onClose', async ({ locks }) => {
  await locks.close({ drainMs: 20_000 });
  await redis.quit();
});

app.setErrorHandler((error, _request, reply) => {
  if (isLockError(error, 'LOCK_TIMEOUT')) return reply.code(423).send({ busy: error.lockName });
  return reply.send(error);
});
app.post<{ Params: { sku: string } }>('/sell/:sku', ({ params: { sku } }) =>
  app.locks.lock(`stock:${sku}`).run(() => sell(redis, sku)),
);
app.get('/ready', async (_request, reply) => {
  const answer = await app.locks.ping({ answerMs: 500 }).catch(() => undefined);
  return answer ?? reply.code(503).send({ ready: false });
});

process.once('SIGTERM', () => void app.close());
console.log(await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 0) }));
