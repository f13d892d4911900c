import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createLocks } from '@locks/core';
import { startMariadb } from '@locks/test-servers';
import { describe, it } from 'vitest';
import { mysqlBackend } from '../src/index.ts';

const MAIN = new URL('./frozen-main.ts', import.meta.url);
/** A release or an abandon, a heartbeat's end, the end of the pool, and a connection that was being made. */
const ENDS_WITHIN_MS = 9_000;

describe.concurrent('a process that closes its locks while the server is frozen ends', () => {
  it.for(['holder', 'waiter', 'starter'])('as a %s', async (role, { expect, onTestFinished }) => {
    const server = await startMariadb();
    onTestFinished(() => server.stop());
    const locks = createLocks(mysqlBackend(server.url));
    onTestFinished(() => locks.close());
    await locks.lock('held').acquire({ ttlMs: 60_000 });
    const child = fork(MAIN, [server.url, role]);
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child, 'message');
    await server.pause();
    if (role === 'starter') {
      child.send('start');
      await once(child, 'message');
    }
    const exited = once(child, 'exit');
    child.send('close');
    const closedAt = performance.now();
    expect(await exited).toEqual([0, null]);
    expect(performance.now() - closedAt).toBeLessThan(ENDS_WITHIN_MS);
    server.resume();
  });
});
