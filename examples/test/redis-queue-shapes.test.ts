import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { report } from '../src/busy-report.ts';
import { save } from '../src/document-save.ts';

let server: RedisServer;
let clients: Redis[];

beforeAll(async () => {
  server = await startRedis();
  clients = [1, 2, 3].map(() => new Redis(server.url));
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.quit()));
  await server.stop();
});

it('one request works, twenty wait, and the others are told at once that it is busy', async () => {
  const machines = clients.map((client) => createLocks(redisBackend(client)));
  let end = (): void => undefined;
  const slow = new Promise<void>((resolve) => (end = resolve));
  const [first] = machines as [(typeof machines)[0]];
  const working = report(first, () => slow);
  await waitUntil(() => first.isLocked('report'), { what: 'the first one' });
  const others = Array.from({ length: 30 }, (_, n) =>
    report(machines[n % 3] as typeof first, async () => undefined),
  );
  const refused: number[] = [];
  for (const other of others) void other.then((status) => status === 503 && refused.push(status));
  await waitUntil(() => refused.length === 10, { what: 'ten refusals' });
  end();
  expect(await working).toBe(200);
  expect((await Promise.all(others)).filter((status) => status === 200)).toHaveLength(20);
  await Promise.all(machines.map((locks) => locks.close()));
});

it('of the saves that wait on three machines the newest is written', async () => {
  const machines = clients.map((client) => createLocks(redisBackend(client)));
  const [one, two, three] = machines as [(typeof machines)[0], (typeof machines)[0], (typeof machines)[0]];
  const written: string[] = [];
  let end = (): void => undefined;
  const slow = new Promise<void>((resolve) => (end = resolve));
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const first = save(one, '42', async () => {
    begin();
    await slow;
    written.push('first');
  });
  // A save that has the lock and has not begun yet is superseded too.
  await begun;
  const waiting = async () =>
    (await one.inspect('document:42')).waiters.map(({ acquisitionId }) => acquisitionId);
  const older = save(two, '42', async () => void written.push('older'));
  await waitUntil(async () => (await waiting()).length === 1, { what: 'the older save to wait' });
  const [olderId] = await waiting();
  const newest = save(three, '42', async () => void written.push('newest'));
  // The older one may have learned by now that it was superseded, and have left.
  await waitUntil(async () => (await waiting()).some((id) => id !== olderId), {
    what: 'the newest save to wait',
  });
  end();
  expect(await Promise.all([first, older, newest])).toEqual([true, false, true]);
  expect(written).toEqual(['first', 'newest']);
  await Promise.all(machines.map((locks) => locks.close()));
});
