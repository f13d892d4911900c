import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import type { LockBackend } from '../../src/backend/types.ts';
import type { LockEvents } from '../../src/events.ts';
import type { AcquireOptions, LockOptions } from '../../src/options.ts';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';

const invalid = { code: 'LOCK_INVALID_ARGUMENT' };

/** Options that every acquire refuses. */
const BAD_OPTIONS: readonly (readonly [option: string, ...values: readonly unknown[]])[] = [
  ['ttlMs', 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1.5, '5', null, 31_536_000_001],
  ['waitMs', -1, Number.NaN, '5', null, Number.NEGATIVE_INFINITY],
  ['maxHoldMs', 0, -1, Number.NaN, '5'],
  ['renewal', 'sometimes', true, 1],
  ['label', 5, 'x'.repeat(257), '\ud800', 'a\nb'],
  ['signal', {}, 'abort', null],
  ['within', {}, 5],
  ['ttl', 1_000],
  ['timeout', 1_000],
];

export const refusalCases: readonly ConformanceCase[] = [
  {
    id: 'faults/bad-options-are-refused',
    clause: '§13.3',
    title: 'a bad option is refused at once with LOCK_INVALID_ARGUMENT that names it, and nothing is sent',
    async run(context) {
      const calls = new CallCounter();
      const { locks, backend } = await context.client({ wrap: calls.wrap });
      const lock = locks.lock(context.name());
      const { minMs } = backend.capabilities.ttl;
      const table = [...BAD_OPTIONS, ...(minMs > 1 ? [['ttlMs', minMs - 1] as const] : [])];
      for (const [option, ...values] of table) {
        for (const value of values) {
          const options = { [option]: value } as AcquireOptions;
          const what = `${option}: ${String(value)}`;
          const isTold = (error: { code?: string; message: string }): boolean => {
            assert.equal(error.code, 'LOCK_INVALID_ARGUMENT', what);
            assert.ok(
              error.message.includes(option),
              `${what} is refused without naming it: ${error.message}`,
            );
            return true;
          };
          await assert.rejects(lock.acquire(options), isTold, what);
          await assert.rejects(lock.tryAcquire(options), isTold, what);
          await assert.rejects(
            lock.run(() => assert.fail('it worked'), options),
            isTold,
            what,
          );
          assert.throws(() => locks.lock(lock.name, options as LockOptions), isTold, what);
          assert.throws(() => context.harness.createLocks(backend, options as LockOptions), isTold, what);
        }
      }
      await assert.rejects(lock.run('work' as never), invalid);
      await assert.rejects(lock.acquire({ reentrant: true } as AcquireOptions), invalid);
      assert.throws(() => locks.lock(lock.name, { reentrant: 1 } as never), invalid);
      // None of these has a wrong value: each stands in the place of the options.
      for (const misplaced of [null, 'a', 5, [], new AbortController().signal] as never[]) {
        await assert.rejects(lock.acquire(misplaced), invalid);
        await assert.rejects(lock.tryAcquire(misplaced), invalid);
        assert.throws(() => locks.lock(lock.name, misplaced), invalid);
        assert.throws(() => context.harness.createLocks(backend, misplaced), invalid);
      }
      assert.equal(calls.total, 0);
    },
  },
  {
    id: 'faults/bad-backends-are-refused',
    clause: '§13.3',
    title: 'a backend with missing methods, or with capabilities that contradict them, is refused at once',
    async run(context) {
      const backend = await context.backend();
      const { capabilities } = backend;
      const whole = delegate(backend, {});
      const { attempt: _, ...lame } = whole;
      const { list: __, ...mute } = whole;
      const bad: readonly unknown[] = [
        undefined,
        {},
        { ...whole, spec: 'locks-backend/0' },
        lame,
        { ...whole, name: '' },
        { ...whole, capabilities: undefined },
        { ...whole, capabilities: { ...capabilities, order: 'random' } },
        { ...whole, capabilities: { ...capabilities, ttl: { minMs: 0, stepMs: 1 } } },
        { ...mute, capabilities: { ...capabilities, features: ['list'] } },
        { ...whole, list: whole.list ?? (() => {}), capabilities: { ...capabilities, features: [] } },
        { ...whole, awaitTurn: 5 },
      ];
      for (const value of bad)
        assert.throws(() => context.harness.createLocks(value as LockBackend), invalid);
    },
  },
  {
    id: 'faults/unsupported-is-refused',
    clause: '§13.4',
    title: 'an undeclared feature is refused with LOCK_UNSUPPORTED, before anything is sent',
    async run(context) {
      const calls = new CallCounter();
      const bare = (backend: LockBackend): LockBackend => {
        const { list: _, forceRelease: __, attemptMany: ___, ...rest } = delegate(backend, {});
        return { ...rest, capabilities: { ...backend.capabilities, features: [] } };
      };
      const { locks } = await context.client({ wrap: (backend) => calls.wrap(bare(backend)) });
      const unsupported = { code: 'LOCK_UNSUPPORTED' };
      await assert.rejects(locks.forceRelease(context.name()), unsupported);
      await assert.rejects(async () => {
        for await (const _ of locks.list()) assert.fail('it listed');
      }, unsupported);
      const { locks: shared } = await context.client({
        wrap: (backend) => calls.wrap(onlyReaders(backend)),
      });
      assert.throws(() => shared.lock(context.name()), unsupported);
      assert.throws(() => shared.readWriteLock(context.name()), unsupported);
      assert.throws(() => shared.semaphore(context.name(), 2), unsupported);
      await assert.rejects(locks.lock(context.name()).acquire({ steal: true }), unsupported);
      assert.equal(calls.total, 0);
    },
  },
  {
    id: 'faults/events-are-published',
    clause: '§13.1',
    title: 'every event of a lock is published on the diagnostics channel once',
    async run(context) {
      const name = context.name();
      const events: string[] = [];
      const messages: { acquisitionId: string; backend: string }[] = [];
      const names: readonly (keyof LockEvents)[] = [
        'locks:acquired',
        'locks:contended',
        'locks:gave-up',
        'locks:released',
      ];
      const listeners = names.map((event) => {
        const listener = (message: unknown): void => {
          const reported = message as { name: string; acquisitionId: string; backend: string };
          if (reported.name !== name) return;
          events.push(event);
          messages.push(reported);
        };
        channel(event).subscribe(listener);
        return () => channel(event).unsubscribe(listener);
      });
      try {
        const { locks, backend } = await context.client();
        const lease = await locks.lock(name).acquire();
        await assert.rejects(locks.lock(name).acquire({ waitMs: context.busyMs }), {
          code: 'LOCK_TIMEOUT',
        });
        await lease.release();
        assert.deepEqual(events, ['locks:acquired', 'locks:contended', 'locks:gave-up', 'locks:released']);
        const ids = messages.map(({ acquisitionId }) => acquisitionId === lease.acquisitionId);
        assert.deepEqual(ids, [true, false, false, true]);
        assert.deepEqual(new Set(messages.map((message) => message.backend)), new Set([backend.name]));
      } finally {
        for (const unsubscribe of listeners) unsubscribe();
      }
    },
  },
];

function onlyReaders(backend: LockBackend): LockBackend {
  const { downgrade: _, resize: __, ...rest } = delegate(backend, {});
  return { ...rest, capabilities: { ...backend.capabilities, modes: ['shared'] } };
}
