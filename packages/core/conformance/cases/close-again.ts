import assert from 'node:assert/strict';
import type { LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { EXCLUSIVE, grab, openCall, requestOf, SHARED } from '../raw.ts';

const closed = { code: 'LOCK_CLOSED' };

export const closeAgainCases: readonly ConformanceCase[] = [
  {
    id: 'close/backend-refuses-calls',
    clause: '§12.6',
    title: 'a closed backend refuses every call with LOCK_CLOSED, and takes no lock',
    async run(context) {
      const { ttlMs } = context.timing;
      const backend = await context.backend();
      const { capabilities } = backend;
      const mode = capabilities.modes.includes('exclusive') ? EXCLUSIVE : SHARED;
      const request = requestOf(context.name(), mode, context.inSteps(ttlMs));
      const grant = await grab(backend, context.name(), context.inSteps(ttlMs), mode);
      const { resource } = grant.request;
      await backend.close();
      await backend.close();
      const calls: Partial<Record<keyof LockBackend, () => Promise<unknown> | undefined>> = {
        attempt: () => backend.attempt(request, capabilities.order !== 'none', openCall),
        attemptMany: () => backend.attemptMany?.([request], openCall),
        awaitTurn: () => backend.awaitTurn?.(request, openCall),
        abandon: () => backend.abandon(request, openCall),
        renew: () => backend.renew([{ grant, ttlMs }], openCall),
        release: () => backend.release(grant, openCall),
        downgrade: () => backend.downgrade?.(grant, openCall),
        resize: () => backend.resize?.(request.resource, 2, openCall),
        inspect: () => backend.inspect(resource, openCall),
        list: () => backend.list?.('', openCall)[Symbol.asyncIterator]().next(),
        forceRelease: () => backend.forceRelease?.(resource, undefined, openCall),
        ping: () => backend.ping?.(openCall),
      };
      for (const [method, send] of Object.entries(calls)) {
        if (backend[method as keyof LockBackend] === undefined) continue;
        await assert.rejects(async () => send(), closed, `${method} after close`);
      }
      const { locks: others } = await context.client();
      const { holders, waiters } = await others.inspect(request.resource);
      assert.deepEqual([holders, waiters], [[], []], 'a closed backend took the lock that it was asked for');
    },
  },
  {
    id: 'close/manager-on-closed-backend',
    clause: '§12.6',
    title: 'a manager whose backend another one closed refuses with LOCK_CLOSED at once, and can be closed',
    async run(context) {
      const backend = await context.backend();
      await context.createLocks(backend).close();
      const locks = context.createLocks(backend);
      const lock = locks.lock(context.name());
      const isClosed = (error: { code?: string }): boolean => {
        assert.equal(error.code, 'LOCK_CLOSED');
        assert.equal(backend.isRetryable(error), false, 'the refusal is called retryable');
        return true;
      };
      await assert.rejects(lock.acquire({ waitMs: 60_000 }), isClosed);
      await assert.rejects(lock.tryAcquire(), isClosed);
      await assert.rejects(lock.inspect(), isClosed);
      await assert.rejects(locks.ping(), isClosed);
      await locks.close();
    },
  },
];
