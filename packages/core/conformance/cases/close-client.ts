import assert from 'node:assert/strict';
import { CallCounter } from '../around-calls.ts';
import { type ConformanceCase, without } from '../case.ts';
import type { CaseContext } from '../case-context.ts';

/** Asserts that the backend does not tell of a closed client: one that does needs the hook of the harness. */
async function noClientIsToldClosed(context: CaseContext): Promise<void> {
  const { isClientClosed } = await context.backend();
  assert.equal(
    isClientClosed,
    undefined,
    'the backend tells of a closed client, and faults.onOwnClient is missing',
  );
}

/** A case about an application that closes its client before the locks. */
export const closeClientCases: readonly ConformanceCase[] = [
  {
    id: 'close/client-closed-first',
    clause: '§12.8',
    title:
      'when the application closes its client first, waits and calls end with LOCK_CLOSED, and close() still resolves',
    missing: (_, harness) =>
      harness.faults?.onOwnClient === undefined
        ? without('no client of the application can be closed under the backend')
        : undefined,
    refused: noClientIsToldClosed,
    async run(context) {
      const own = await context.harness.faults?.onOwnClient?.();
      if (own === undefined) return;
      const { slackMs } = context.timing;
      const calls = new CallCounter();
      const locks = context.createLocks(calls.wrap(own.backend), { waitMs: 600_000, ttlMs: 60_000 });
      context.onEnd(() => locks.close());
      const name = context.name();
      const lease = await locks.lock(name).acquire();
      const answers = calls.answersTo('attempt');
      const waiting = locks.lock(name).acquire();
      const ended = waiting.then(
        () => assert.fail('a held lock was granted'),
        (error: unknown) => error,
      );
      await context.until('the waiter stands in the queue', () => calls.answersTo('attempt') > answers);
      await own.closeClient();
      const closed = { code: 'LOCK_CLOSED', message: /closed before locks\.close\(\)/ };
      await assert.rejects(locks.lock(context.name()).acquire(), closed);
      await assert.rejects(locks.inspect(name), closed);
      // Where the holder knows of the end of its session already, that is a loss.
      const { tenure } = locks.capabilities;
      await assert.rejects(lease.release(), (error: { readonly code?: unknown }) =>
        tenure === 'session' && error.code === 'LOCK_LOST' ? true : error.code === 'LOCK_CLOSED',
      );
      let error: unknown;
      void ended.then((reason) => (error = reason));
      await context.until('the waiter is told', () => error !== undefined, 3 * slackMs + 2_000);
      await assert.rejects(Promise.reject(error), closed);
      await locks.close();
    },
  },
];
