import { expect, test } from 'vitest';
import type { LockBackend } from '../../src/backend/types.ts';
import { locksOn, pass, useFakeClock } from '../fixture.ts';
import { capabilities, granted, scriptedBackend, type ScriptedBackend } from '../scripted-backend.ts';

/** A backend whose grants last as long as a session, which ends `endsAfterMs` after the grant. */
function inSession(script: Partial<LockBackend>, endsAfterMs = Number.POSITIVE_INFINITY): ScriptedBackend {
  return scriptedBackend({
    capabilities: { ...capabilities, tenure: 'session' },
    attempt: async (request, _enqueue, call) => {
      const end = call.now() + endsAfterMs;
      return granted(request, call, { session: { validUntil: () => end } });
    },
    ...script,
  });
}

test('in a session maxHoldMs ends the hold: the holder is told, and then the store frees it', async () => {
  useFakeClock();
  const order: string[] = [];
  const backend = inSession({ abandon: async () => void order.push('freed') });
  const lease = await locksOn(backend, { maxHoldMs: 25_000 }).lock('a').acquire();
  lease.signal.addEventListener('abort', () => void order.push('told'));
  await pass(24_999);
  expect(order).toEqual([]);
  await pass(1);
  expect(order).toEqual(['told', 'freed']);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  expect(String(lease.signal.reason)).toContain('maxHoldMs of 25000 ms');
});

test('in a session the abandon of a hold past its maxHoldMs is repeated also after its ttl', async () => {
  useFakeClock();
  const abandon = () => Promise.reject(new Error('down'));
  const backend = inSession({ abandon, isRetryable: () => false });
  await locksOn(backend, { ttlMs: 10_000, maxHoldMs: 1_000 }).lock('a').acquire();
  await pass(60_000);
  expect(backend.of('abandon').length).toBeGreaterThan(50);
});

test('a release just before maxHoldMs has the time of any other', async () => {
  useFakeClock();
  const backend = inSession({
    release: () => new Promise((resolve) => void setTimeout(resolve, 300, 'released')),
  });
  const lease = await locksOn(backend, { maxHoldMs: 25_000 }).lock('a').acquire();
  await pass(24_995);
  const releasing = lease.release();
  await pass(400);
  await releasing;
  expect(lease.signal.aborted).toBe(false);
});

test('a session that ends before maxHoldMs is the reason of the loss', async () => {
  useFakeClock();
  const lease = await locksOn(inSession({}, 5_000), { maxHoldMs: 25_000 }).lock('a').acquire();
  await pass(30_000);
  expect(lease.signal.reason).toMatchObject({ reason: 'session-lost' });
});

test('the loss of a lease past its maxHoldMs names that option', async () => {
  useFakeClock();
  const locks = locksOn(scriptedBackend(), { ttlMs: 1_000 });
  const limited = await locks.lock('a').acquire({ maxHoldMs: 2_000 });
  const later = await locks.lock('b').acquire({ maxHoldMs: 2_500 });
  await pass(5_000);
  expect(() => limited.assertValid()).toThrow('maxHoldMs of 2000 ms');
  expect(() => later.assertValid()).toThrow('maxHoldMs of 2500 ms');
});
