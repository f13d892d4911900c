import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const recipes = {
  Fastify: '../src/frameworks/fastify.ts',
  Express: '../src/frameworks/express.ts',
  Hono: '../src/frameworks/hono.ts',
  'Next.js': './next-server.ts',
};

let server: RedisServer;
let redis: Redis;
let started: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
beforeEach(() => redis.flushall());
afterEach(async () => {
  const running = started.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(
    running.map((child) => {
      child.kill('SIGKILL');
      return once(child, 'exit');
    }),
  );
  started = [];
});
afterAll(async () => {
  await redis.quit();
  await server.stop();
});

/** Starts a recipe in a process of its own, and waits until it has printed its address. */
async function start(file: string, thinkMs: number): Promise<{ url: string; child: ChildProcess }> {
  const env = { ...process.env, REDIS_URL: server.url, THINK_MS: String(thinkMs) };
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [path], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  started.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${file} ended`)));
  const [url] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  ended.catch(() => {});
  return { url, child };
}

async function post(url: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers: { connection: 'close' } });
  return response.ok ? response.text() : `${response.status}`;
}

describe.each(Object.entries(recipes))('%s', (_, file) => {
  it('sells every unit once, in two processes, and is ready', async () => {
    const shops = await Promise.all([start(file, 1), start(file, 1)]);
    await redis.set('units:a', 15);
    const calls = Array.from({ length: 20 }, (_, n) => post(`${shops[n % 2]?.url}/sell/a`));
    const answers = await Promise.all(calls);
    expect(answers.filter((answer) => answer === 'sold')).toHaveLength(15);
    expect(await redis.get('units:a')).toBe('0');
    expect((await fetch(`${shops[0]?.url}/ready`, { headers: { connection: 'close' } })).status).toBe(200);
  });

  it('answers the request that holds a lock at SIGTERM, leaves the lock free, and ends', async () => {
    const { url, child } = await start(file, 1_500);
    await redis.set('units:a', 1);
    const exited = once(child, 'exit') as Promise<[number | null]>;
    const locks = createLocks(redisBackend(redis));
    const answer = post(`${url}/sell/a`);
    await waitUntil(() => locks.isLocked('stock:a'), { what: 'the lock to be held' });
    child.kill('SIGTERM');
    // The ttl is 30 s: who gets the lock sooner got it by a release.
    await locks
      .lock('stock:a')
      .run(async () => expect(await redis.get('units:a')).toBe('0'), { waitMs: 20_000 });
    expect(await answer).toBe('sold');
    expect((await exited)[0]).toBe(0);
    await locks.close();
  });
});
