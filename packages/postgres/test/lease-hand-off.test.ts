import type { AcquireRequest, Call } from '@locks/core/backend';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Resolves when the store counts `count` clients of a schema that listen. */
async function untilListening(schema: string, count = 1): Promise<void> {
  const listening = `SELECT 1 FROM ${schema}.clients WHERE listener IS NOT NULL AND NOT ${schema}.has_ended(listener)`;
  await waitUntil(async () => (await fixture.server.query(listening)).length === count, {
    what: `${count} clients that listen`,
  });
}

it('a hand-off to an acquisition that was given up, and whose abandon was lost, is abandoned at once', async () => {
  const schema = fixture.schema();
  const [near, far] = [fixture.backend({ schema }), fixture.backend({ schema })];
  const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  const mode = { kind: 'exclusive' } as const;
  const request = (acquisitionId: string): AcquireRequest => ({
    resource: 'a',
    acquisitionId,
    mode,
    ttlMs: 60_000,
  });
  const held = await near.attempt(request('holder'), false, call);
  if (held.status !== 'granted') throw new Error('contended');
  await far.attempt(request('given-up'), true, call);
  await far.attempt(request('waits'), true, call);
  await untilListening(schema);
  const rename = (from: string, to: string) =>
    fixture.server.query(`ALTER FUNCTION ${schema}.${from} RENAME TO ${to}`);
  await rename('release_all', 'hidden');
  await expect(far.abandon(request('given-up'), call)).rejects.toMatchObject({ code: '42883' });
  await rename('hidden', 'release_all');
  const turn = far.awaitTurn?.(request('waits'), call);
  expect(await near.release(held.grant, call)).toBe('released');
  expect((await turn)?.request.acquisitionId).toBe('waits');
});

it('a hand-off that is told twice, and was granted the first time, is not abandoned; other messages are ignored', async () => {
  const schema = fixture.schema();
  const [holder, waiter] = [fixture.locks({ schema }), fixture.locks({ schema })];
  const lease = await holder.lock('a').acquire();
  const entered = waiter.lock('a').acquire();
  await untilListening(schema);
  const [told] = await fixture.server.query(`SELECT client, id FROM ${schema}.waiters`);
  await lease.release();
  const next = await entered;
  for (const message of [`${told?.['id']} ${next.fencingToken}`, '', 'no hand-off', `${told?.['id']} many`])
    await fixture.server.query(`SELECT pg_notify('locks_${told?.['client']}', '${message}')`);
  // Another hand-off over the same connection: those messages have been read by then.
  const other = await holder.lock('b').acquire();
  const behind = waiter.lock('b').acquire();
  await waitUntil(async () => (await holder.inspect('b')).waiters.length === 1, { what: 'a waiter' });
  await other.release();
  await (await behind).release();
  await next.renew();
  await next.release();
});
