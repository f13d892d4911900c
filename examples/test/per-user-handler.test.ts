import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { expect, it } from 'vitest';
import { onePerUser, type UserHandler } from '../src/per-user-handler.ts';

async function listening(handle: UserHandler, locks = createLocks(memoryBackend())) {
  const server: Server = createServer(onePerUser(locks, handle)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    locks,
    get: (user: string, signal?: AbortSignal) =>
      fetch(url, { headers: { 'x-user': user }, ...(signal && { signal }) }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await locks.close();
    },
  };
}

it('serves one request of a user at a time, and other users meanwhile', async () => {
  const inside = new Map<string, number>();
  let most = 0;
  let usersAtOnce = 0;
  await using server = await listening(async (user, _request, response) => {
    inside.set(user, (inside.get(user) ?? 0) + 1);
    most = Math.max(most, inside.get(user) ?? 0);
    usersAtOnce = Math.max(usersAtOnce, [...inside.values()].filter((count) => count > 0).length);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inside.set(user, (inside.get(user) ?? 0) - 1);
    response.end('done\n');
  });
  const replies = await Promise.all(['ada', 'ada', 'ada', 'bob', 'bob'].map((user) => server.get(user)));
  expect(replies.map((reply) => reply.status)).toEqual([200, 200, 200, 200, 200]);
  expect(most).toBe(1);
  expect(usersAtOnce).toBe(2);
});

it('takes a client that hung up out of the queue', async () => {
  let served = 0;
  await using server = await listening(async (_user, _request, response) => {
    served += 1;
    response.end('done\n');
  });
  const lease = await server.locks.lock('user:ada').acquire();
  const hangUp = new AbortController();
  const reply = server.get('ada', hangUp.signal);
  const waiting = async () => (await server.locks.inspect('user:ada')).waiters.length;
  await expect.poll(waiting).toBe(1);
  hangUp.abort();
  await expect(reply).rejects.toThrow();
  await expect.poll(waiting).toBe(0);
  await lease.release();
  expect(served).toBe(0);
});
