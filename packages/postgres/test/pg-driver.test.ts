import { createLocks } from '@locks/core';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { postgresLeaseBackend } from '../src/index.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

it('a server that ends a session after its backend was closed ends no process', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  const locks = createLocks(postgresLeaseBackend(server.url));
  await locks.lock('a').run(() => undefined);
  const sessions = await server.query(
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
  );
  const pids = sessions.map(({ pid }) => Number(pid));
  expect(pids).not.toEqual([]);
  // The server processes do not see that the client takes its leave.
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  await locks.close();
  for (const signal of ['SIGTERM', 'SIGCONT']) for (const pid of pids) process.kill(pid, signal);
  await expect.poll(() => pids.filter(isAlive), { timeout: 10_000 }).toEqual([]);
  // What the sessions sent last has come.
  await server.query('SELECT 1');
  await new Promise((resolve) => setImmediate(resolve));
  expect(uncaught).toEqual([]);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
