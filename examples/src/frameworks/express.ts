/** Express 5: one manager for the process, health, and an end without work that is half done. */
import type { AddressInfo } from 'node:net';
import { createLocks, isLockError } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import express, { type NextFunction, type Request, type Response } from 'express';
import { Redis } from 'ioredis';
import { sell } from './stock.ts';

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');
const locks = createLocks(redisBackend(redis), { waitMs: 20_000 });
const app = express();

app.post('/sell/:sku', async ({ params: { sku } }, response) => {
  response.send(await locks.lock(`stock:${sku}`).run(() => sell(redis, sku)));
});
app.get('/ready', async (_request, response) => {
  const answer = await locks.ping({ answerMs: 500 }).catch(() => undefined);
  response.status(answer === undefined ? 503 : 200).json(answer ?? { ready: false });
});
app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (!isLockError(error, 'LOCK_TIMEOUT')) return next(error);
  response.status(423).json({ busy: error.lockName });
});

const server = app.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
async function end(): Promise<void> {
  await locks.close({ drainMs: 20_000 });
  await redis.quit();
}
// Requests are answered first; then work in the background has 20 s more.
process.once('SIGTERM', () => server.close(() => void end()));
