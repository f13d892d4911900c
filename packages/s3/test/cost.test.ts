import { randomUUID } from 'node:crypto';
import type { AcquireRequest, Call } from '@locks/core/backend';
import { waitUntil } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { s3Backend } from '../src/index.ts';
import { createBucket, openClient, server } from './fixture.ts';

const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

function request(resource: string): AcquireRequest {
  return { resource, acquisitionId: randomUUID(), label: 'cost', mode: { kind: 'exclusive' }, ttlMs: 60_000 };
}

/** A client that counts its requests. */
async function metered() {
  const client = openClient(await server());
  const bucket = await createBucket(client);
  const sent = { reads: 0, writes: 0 };
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const isRead = (context as { commandName?: string }).commandName === 'GetObjectCommand';
      sent[isRead ? 'reads' : 'writes'] += 1;
      return await next(args);
    },
    { step: 'initialize' },
  );
  return { backend: s3Backend(client, { bucket }), sent };
}

it('a lock costs two writes, once this process has used it', async () => {
  const { backend, sent } = await metered();
  for (const [round, most] of [7, 2, 2].entries()) {
    const before = { ...sent };
    const attempt = await backend.attempt(request('a'), true, call);
    if (attempt.status !== 'granted') throw new Error('contended');
    await backend.release(attempt.grant, call);
    // The first one tries the provider too.
    expect(sent.writes - before.writes).toBeLessThanOrEqual(most);
    expect(sent.reads - before.reads).toBeLessThanOrEqual(round === 0 ? 1 : 0);
  }
  await backend.close();
});

it('ten waiters of a process read once a second, and write every six seconds', async () => {
  const { backend, sent } = await metered();
  const attempt = await backend.attempt(request('a'), true, call);
  if (attempt.status !== 'granted') throw new Error('contended');
  const turns = Array.from({ length: 10 }, () => request('a')).map(async (each) => {
    await backend.attempt(each, true, call);
    return backend.awaitTurn?.(each, call);
  });
  for (const turn of turns) turn.catch(() => undefined);
  await waitUntil(async () => (await backend.inspect('a', call)).waiters.length === 10, {
    what: 'ten waiters',
  });
  // The pauses between polls get longer at first.
  const settledAt = performance.now();
  await waitUntil(() => performance.now() - settledAt > 6_000, { what: 'longer pauses', everyMs: 100 });
  const [startedAt, before] = [performance.now(), { ...sent }];
  await waitUntil(() => sent.writes - before.writes >= 3, { what: 'three heartbeats', timeoutMs: 40_000 });
  const hours = (performance.now() - startedAt) / 3_600_000;
  const perHour = {
    reads: Math.round((sent.reads - before.reads) / hours),
    writes: Math.round((sent.writes - before.writes) / hours),
  };
  console.log(`an hour of waiting: ${perHour.reads} reads, ${perHour.writes} writes`);
  expect(perHour.reads).toBeLessThan(6_000);
  expect(perHour.writes).toBeLessThan(1_200);
  await backend.close();
});
