import type { AcquireRequest, Call } from '@locks/core/backend';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const SUSPENDED_MS = 700;

it('a hand-off that comes in the reply to a check is counted from its sending, also when the process was suspended', async () => {
  let suspendedMs = 0;
  // Core's clock counts the time of a suspension, the monotonic one alone does not.
  const now = (): number => performance.now() + suspendedMs;
  const pool = fixture.pool();
  let sentAt = 0;
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => unknown;
    const suspendAfter = (...values: unknown[]): unknown => {
      const sent = query(...values);
      if ((values[0] as { text?: string }).text?.includes('check_waiters') === true) {
        sentAt = now();
        suspendedMs += SUSPENDED_MS;
      }
      return sent;
    };
    Object.assign(client, { query: suspendAfter });
  });
  const schema = fixture.schema();
  const [near, far] = [fixture.backend({ schema }), fixture.backend({ schema, pool, listen: false })];
  const call: Call = { now, deadline: Number.POSITIVE_INFINITY };
  const mode = { kind: 'exclusive' } as const;
  const holder: AcquireRequest = { resource: 'a', acquisitionId: 'holder', mode, ttlMs: 2_000 };
  const waiter: AcquireRequest = { resource: 'a', acquisitionId: 'waiter', mode, ttlMs: 10_000 };
  expect((await near.attempt(holder, false, call)).status).toBe('granted');
  expect((await far.attempt(waiter, true, call)).status).toBe('contended');
  const grant = await far.awaitTurn?.(waiter, call);
  expect(sentAt).toBeGreaterThan(0);
  expect(grant?.countedFrom).toBeLessThanOrEqual(sentAt);
});

it('a hand-off that comes in the reply to a release is counted from its sending, however late the clock is read', async () => {
  const readings: number[] = [];
  // As if the process was suspended after each reading of the clock.
  const now = (): number => {
    readings.push(performance.now() + 50 * readings.length);
    return readings.at(-1) as number;
  };
  const pool = fixture.pool();
  let lastBefore = 0;
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => unknown;
    const noting = (...values: unknown[]): unknown => {
      lastBefore = readings.at(-1) ?? 0;
      return query(...values);
    };
    Object.assign(client, { query: noting });
  });
  const backend = fixture.backend({ schema: fixture.schema(), pool, listen: false });
  const call: Call = { now, deadline: Number.POSITIVE_INFINITY };
  const mode = { kind: 'exclusive' } as const;
  const holder: AcquireRequest = { resource: 'b', acquisitionId: 'holder', mode, ttlMs: 60_000 };
  const waiter: AcquireRequest = { resource: 'b', acquisitionId: 'waiter', mode, ttlMs: 60_000 };
  const held = await backend.attempt(holder, false, call);
  if (held.status !== 'granted') throw new Error('contended');
  expect((await backend.attempt(waiter, true, call)).status).toBe('contended');
  const turn = backend.awaitTurn?.(waiter, call);
  await backend.release(held.grant, call);
  expect((await turn)?.countedFrom).toBeLessThanOrEqual(lastBefore);
});
