import { randomUUID } from 'node:crypto';
import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import { waitUntil } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { dynamodbBackend } from '../src/index.ts';
import { createTable, openClient, server } from './fixture.ts';

const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

function request(resource: string): AcquireRequest {
  return { resource, acquisitionId: randomUUID(), label: 'cost', mode: { kind: 'exclusive' }, ttlMs: 60_000 };
}

/** A client that counts what its requests consume. */
async function metered() {
  const client = openClient((await server()).url);
  const table = await createTable(client);
  const consumed = { requests: 0, reads: 0, writes: 0 };
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const input = { ...args.input, ReturnConsumedCapacity: 'TOTAL' };
      const isWrite = !/Get|Scan/.test((context as { commandName?: string }).commandName ?? '');
      const result = await next({ ...args, input: input as typeof args.input });
      const { ConsumedCapacity: told } = result.output as { ConsumedCapacity?: unknown };
      const [capacity] = [told].flat() as [{ CapacityUnits?: number }?];
      consumed.requests += 1;
      consumed[isWrite ? 'writes' : 'reads'] += capacity?.CapacityUnits ?? 0;
      return result;
    },
    { step: 'initialize' },
  );
  return { backend: dynamodbBackend(client, { table }), consumed };
}

it('a lock costs two write units and no read unit, once this process has used it', async () => {
  const { backend, consumed } = await metered();
  const take = async (): Promise<Grant> => {
    const attempt = await backend.attempt(request('a'), true, call);
    if (attempt.status !== 'granted') throw new Error('contended');
    return attempt.grant;
  };
  await backend.release(await take(), call);
  const before = { ...consumed };
  await backend.release(await take(), call);
  expect(consumed.writes - before.writes).toBe(2);
  expect(consumed.reads - before.reads).toBe(0);
  expect(before.writes).toBe(2);
  expect(before.reads).toBeLessThanOrEqual(1);
  await backend.close();
});

it('ten waiters of a process read once a second, and write every two seconds', async () => {
  const { backend, consumed } = await metered();
  const attempt = await backend.attempt(request('a'), true, call);
  if (attempt.status !== 'granted') throw new Error('contended');
  const waiting = Array.from({ length: 10 }, () => request('a'));
  const turns = waiting.map(async (each) => {
    await backend.attempt(each, true, call);
    return backend.awaitTurn?.(each, call);
  });
  for (const turn of turns) turn.catch(() => undefined);
  await waitUntil(async () => (await backend.inspect('a', call)).waiters.length === 10, {
    what: 'ten waiters',
  });
  // The pauses between polls get longer at first.
  const settledAt = performance.now();
  await waitUntil(() => performance.now() - settledAt > 4_000, { what: 'longer pauses', everyMs: 100 });
  const [startedAt, before] = [performance.now(), { ...consumed }];
  await waitUntil(() => consumed.requests - before.requests >= 20, {
    what: 'twenty requests',
    timeoutMs: 30_000,
  });
  const hours = (performance.now() - startedAt) / 3_600_000;
  const perHour = {
    reads: Math.round((consumed.reads - before.reads) / hours),
    writes: Math.round((consumed.writes - before.writes) / hours),
  };
  console.log(`an hour of waiting: ${perHour.reads} read units, ${perHour.writes} write units`);
  expect(perHour.reads).toBeLessThan(5_000);
  expect(perHour.writes).toBeLessThan(3_000);
  await backend.close();
});
