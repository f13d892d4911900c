/** Hono on Node: one manager for the process in the context, health, and an end without work that is half done. */
import { serve } from '@hono/node-server';
import { createLocks, type FencedLockManager, isLockError } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { Hono } from 'hono';
import { Redis } from 'ioredis';
import { sell } from './stock.ts';

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');
const locks = createLocks(redisBackend(redis), { waitMs: 20_000 });
const app = new Hono<{ Variables: { locks: FencedLockManager } }>();

app.use(async (context, next) => {
  context.set('locks', locks);
  await next();
});
app.post('/sell/:sku', async (context) => {
  const { sku } = context.req.param();
  return context.text(await context.var.locks.lock(`stock:${sku}`).run(() => sell(redis, sku)));
});
app.get('/ready', async (context) => {
  const answer = await context.var.locks.ping({ answerMs: 500 }).catch(() => undefined);
  return context.json(answer ?? { ready: false }, answer === undefined ? 503 : 200);
});
app.onError((error, context) => {
  if (!isLockError(error, 'LOCK_TIMEOUT')) throw error;
  return context.json({ busy: error.lockName }, 423);
});

const port = Number(process.env['PORT'] ?? 0);
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (address) => {
  console.log(`http://127.0.0.1:${address.port}`);
});
async function end(): Promise<void> {
  await locks.close({ drainMs: 20_000 });
  await redis.quit();
}
// Requests are answered first; then work in the background has 20 s more.
process.once('SIGTERM', () => server.close(() => void end()));
