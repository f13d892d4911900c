import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';

const MACHINE = fileURLToPath(new URL('node-cron-machine.ts', import.meta.url));

let server: RedisServer;
let redis: Redis;
let machines: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  machines = ['m0', 'm1', 'm2'].map((label) =>
    spawn(process.execPath, [MACHINE, server.url, label], { stdio: ['ignore', 'inherit', 'inherit'] }),
  );
});
afterAll(async () => {
  await Promise.all(machines.map(kill));
  redis.disconnect();
  await server.stop();
});

async function kill(machine: ChildProcess): Promise<void> {
  if (machine.exitCode !== null || machine.signalCode !== null) return;
  machine.kill('SIGKILL');
  await once(machine, 'exit');
}

const events = (): Promise<string[]> => redis.lrange('runs', 0, -1);
const countOf = async (what: string): Promise<number> =>
  (await events()).filter((event) => event.startsWith(what)).length;

/** Every run ends before the next begins. */
function areAlone(runs: readonly string[]): boolean {
  return runs.every((event, index) => {
    if (event.startsWith('begin')) return true;
    return runs[index - 1] === event.replace(/^\w+/, 'begin');
  });
}

it('node-cron on three machines runs a task on one of them each time, also after one failed, and after one died', async () => {
  await waitUntil(async () => (await countOf('end')) >= 4 && (await redis.llen('skipped')) >= 4, {
    what: 'four runs, and machines that were not elected',
    timeoutMs: 30_000,
  });
  expect(new Set(await redis.lrange('skipped', 0, -1))).toEqual(new Set(['not-elected']));
  const runs = await events();
  expect(runs[1]).toMatch(/^fail/);
  expect(areAlone(runs)).toBe(true);
  await kill(machines[0] as ChildProcess);
  const afterDeath = await countOf('end');
  // If it died in a run, the lock is free after 30 s.
  await waitUntil(async () => (await countOf('end')) >= afterDeath + 2, {
    what: 'runs after a machine died',
    timeoutMs: 60_000,
  });
}, 200_000);
