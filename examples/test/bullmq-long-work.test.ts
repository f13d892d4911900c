import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ReportJob } from '../src/schedulers/bullmq-long-work.ts';

const WORKER = fileURLToPath(new URL('bullmq-worker.ts', import.meta.url));
const TTL_MS = 2_000;

let server: RedisServer;
let connection: Redis;
let folder: string;
let workers: ChildProcess[] = [];

beforeEach(async () => {
  server = await startRedis();
  connection = new Redis(server.url, { maxRetriesPerRequest: null });
  folder = mkdtempSync(join(tmpdir(), 'locks-'));
});
afterEach(async () => {
  for (const worker of workers) {
    if (worker.exitCode !== null) continue;
    worker.kill('SIGKILL');
    await once(worker, 'exit');
  }
  connection.disconnect();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const said = (): string[] =>
  existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8').trim().split('\n') : [];
const countOf = (what: string): number => said().filter((line) => line.startsWith(what)).length;

/** One job and two workers, one of which is blocked by it for three ttls. Gives what they did, until `isOver`. */
async function deliver(thread: 'with' | 'without', isOver: () => boolean): Promise<string[]> {
  workers = ['w1', 'w2'].map((label) =>
    spawn(process.execPath, [WORKER, join(folder, 'log'), label, String(TTL_MS), thread], {
      env: { ...process.env, REDIS_URL: server.url },
      stdio: ['ignore', 'inherit', 'inherit'],
    }),
  );
  await waitUntil(() => countOf('is ready') === 2, { what: 'both workers', timeoutMs: 30_000 });
  const queue = new Queue<ReportJob>('reports', { connection });
  await queue.add('render', { report: 'sales' });
  await waitUntil(isOver, { what: `the end of the job ${thread} a thread`, timeoutMs: 40_000 });
  await queue.close();
  return said().filter((line) => !line.startsWith('is ready'));
}

it('work that blocks a worker of BullMQ for three ttls is not begun by the second worker, which is given the job, too', async () => {
  const lines = await deliver('with', () => countOf('completes') > 0);
  const [first = ''] = lines.filter((line) => line.startsWith('begins'));
  const worker = first.split(' ').at(-1);
  const other = worker === 'w1' ? 'w2' : 'w1';
  expect(lines.filter((line) => /^(begins|ends)/.test(line))).toEqual([first, `ends ${worker}`]);
  const meanwhile = lines.slice(lines.indexOf(first), lines.indexOf(`ends ${worker}`));
  expect(meanwhile).toContain(`is given the job ${other}`);
}, 120_000);

it('without a thread the second worker begins it, too, while the first is at it', async () => {
  const lines = await deliver('without', () => countOf('begins') > 1);
  const begun = lines.filter((line) => line.startsWith('begins'));
  expect(begun.toSorted()).toEqual(['begins w1', 'begins w2']);
  expect(lines.indexOf(begun[1] as string)).toBeLessThan(
    lines.concat('ends').findIndex((line) => line.startsWith('ends')),
  );
}, 120_000);
