import { createLocks, type FencedLease, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { expect, it } from 'vitest';
import { every, once } from '../src/index.ts';
import { Machines, NOON } from './machine.ts';

/** The memory backend with holds that last as long as its session, which never ends. */
function locksInASession(): LockManager<FencedLease> {
  const backend = memoryBackend();
  const { capabilities, attempt } = backend;
  return createLocks(
    Object.assign(backend, {
      capabilities: { ...capabilities, tenure: 'session' as const },
      attempt: async (...args: Parameters<typeof attempt>) => {
        const [request, ...rest] = args;
        const answer = await attempt.call(backend, { ...request, ttlMs: 60_000 }, ...rest);
        if (answer.status !== 'granted') return answer;
        const session = { validUntil: () => Number.POSITIVE_INFINITY };
        return { ...answer, grant: { ...answer.grant, request, session } };
      },
    } as unknown as Partial<typeof backend>),
  );
}

it('ends a run at atMostMs also where a session keeps the lock', async () => {
  const locks = locksInASession();
  const { slots } = new Machines();
  const options = {
    slot: every(60_000),
    atMostMs: 100,
    slots,
    retry: 'next-machine',
    clock: () => NOON,
  } as const;
  let reason: unknown;
  const result = await once(
    locks,
    'report',
    async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      reason = signal.reason;
      await using next = await locks.lock('report').acquire();
      return next.name;
    },
    options,
  );
  expect(reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  expect(result).toMatchObject({ value: 'report' });
});
