import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { figure, Lab, SESSION_MS, timeOf, untilWaiting } from './lab.ts';

/** Sessions end in steps of the tick, and the machine is busy. */
const SLACK_MS = 2_000;

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

test.concurrent('the lock of a killed process is free when its session is over', async () => {
  await using lab = new Lab();
  const locks = lab.locks(server);
  const victim = start('killed-holder');
  await once(victim, 'message');
  const waiting = timeOf(locks.lock('killed-holder').acquire({ waitMs: 20_000 }));
  await untilWaiting(locks, 'killed-holder');
  const killedAt = performance.now();
  victim.kill('SIGKILL');
  const next = await waiting;
  figure(`killed holder, session of ${SESSION_MS} ms: the next one holds after`, next.at - killedAt);
  expect(next.at - killedAt).toBeLessThan(SESSION_MS + SLACK_MS);
  await next.value.release();
});

test.concurrent('a killed process that waited is passed over when its session is over', async () => {
  await using lab = new Lab();
  const locks = lab.locks(server);
  const holder = await locks.lock('killed-waiter').acquire();
  const victim = start('killed-waiter');
  await untilWaiting(locks, 'killed-waiter');
  const waiting = timeOf(lab.locks(server).lock('killed-waiter').acquire({ waitMs: 20_000 }));
  await untilWaiting(locks, 'killed-waiter', 2);
  victim.kill('SIGKILL');
  const releasedAt = performance.now();
  await holder.release();
  const next = await waiting;
  figure(`killed waiter, session of ${SESSION_MS} ms: the next one holds after`, next.at - releasedAt);
  expect(next.at - releasedAt).toBeLessThan(SESSION_MS + SLACK_MS);
  await next.value.release();
});

function start(name: string): ChildProcess {
  const main = fileURLToPath(new URL('victim.ts', import.meta.url));
  return fork(main, [server.address, String(SESSION_MS), name], { execArgv: [] });
}
