import type { Grant } from '@locks/core/backend';
import { startProxy } from '@locks/test-servers';
import { createPool } from 'mysql2';
import { expect, it, onTestFinished } from 'vitest';
import { acquire, call, freshPrefix, open, request, take, theServer, until, useServer } from './fixture.ts';

useServer();

const oneWayMs = 100;

it('a lease is counted from before the statement that granted it was sent, however it came about', async () => {
  const proxy = await startProxy(theServer(), { protocol: 'raw' });
  onTestFinished(() => proxy.stop());
  const pool = createPool({ host: proxy.host, port: proxy.port, user: 'app', database: 'locks' });
  onTestFinished(() => pool.promise().end());
  const tablePrefix = freshPrefix();
  const [far, near] = [open({ tablePrefix, pool }), open({ tablePrefix })];
  await far.release(await take(far, request('warm')), call);
  proxy.latency(oneWayMs);

  const roundTripMs = 2 * oneWayMs - 10;
  /** The statement that granted it was sent a round trip ago, or earlier. */
  const expectCountedInTime = ({ countedFrom }: Grant): void =>
    expect(performance.now() - countedFrom).toBeGreaterThan(roundTripMs);

  // In one statement.
  const first = await take(far, request('a'));
  expectCountedInTime(first);

  // Handed over by the release of this process.
  const waiting = acquire(far, request('a'));
  await until(async () => (await near.inspect('a', call)).waiters.length === 1);
  // Its answer is on the way for a while.
  await new Promise((resolve) => setTimeout(resolve, 8 * oneWayMs));
  const told = waiting.then((grant) => {
    expectCountedInTime(grant);
    return grant;
  });
  const [, second] = await Promise.all([far.release(first, call), told]);

  // Left free by another process, and taken by a statement of ours: the whole ttl from then.
  await far.release(second, call);
  const other = await take(near, request('b', { ttlMs: 9_000 }));
  const taking = acquire(far, request('b', { ttlMs: 5_000 }));
  await until(async () => (await near.inspect('b', call)).waiters.length === 1);
  await near.release(other, call);
  const third = await taking;
  expectCountedInTime(third);
  const [holder] = (await near.inspect('b', call)).holders;
  const leftHere = third.countedFrom + (third.validForMs ?? 5_000) - performance.now();
  // The store ends it no earlier than its holder believes.
  expect(holder?.expiresInMs).toBeGreaterThan(leftHere - 5);
});
