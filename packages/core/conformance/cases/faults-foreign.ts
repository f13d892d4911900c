import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import { type ConformanceCase, noHook, without } from '../case.ts';
import { clientsShareTheStore } from '../needs.ts';

/** What a decoder throws that did not expect such data. */
const MISREAD = [TypeError, SyntaxError, RangeError, ReferenceError];

export const foreignDataCases: readonly ConformanceCase[] = [
  {
    id: 'faults/foreign-data-fails-its-own-name',
    clause: '§13.5',
    title:
      'what another program has written in the place of a resource is no free lock, fails with words, and fails nothing else',
    missing: (_, { faults }) => {
      if (faults?.corrupt === undefined) return noHook('faults.corrupt');
      return faults.corrupt === 'none'
        ? without('another program cannot write there what misleads')
        : undefined;
    },
    refused: clientsShareTheStore,
    async run(context) {
      const { slackMs } = context.timing;
      const { locks, backend } = await context.client();
      const base = context.name();
      const [goodName, badName] = [`${base} good`, `${base} bad`];
      const good = await locks.lock(goodName).acquire({ ttlMs: context.inSteps(60_000) });
      const corrupt = context.harness.faults?.corrupt;
      if (typeof corrupt !== 'function') throw new TypeError('the harness has no faults.corrupt');
      await corrupt(badName);
      const bad = locks.lock(badName);
      assert.equal(await refusedWithWords(bad.tryAcquire()), undefined, 'it was granted');
      assert.equal(await refusedWithWords(bad.acquire({ waitMs: 2 * slackMs })), undefined, 'it was granted');
      await refusedWithWords(locks.inspect(badName));
      if (backend.list !== undefined) {
        const listed: string[] = [];
        for await (const { name } of locks.list(base)) listed.push(name);
        assert.ok(listed.includes(goodName), 'list does not show the other lock');
      }
      await good.renew();
      await good.release();
      await locks.lock(goodName).run(() => {});
      if (backend.forceRelease !== undefined) await refusedWithWords(locks.forceRelease(badName));
    },
  },
];

/** The value of a call, or `undefined` where it failed with an error that is meant for its reader. */
async function refusedWithWords<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return undefined;
    if (!isLockError(error, 'LOCK_BACKEND')) throw error;
    const { cause } = error;
    assert.ok(!MISREAD.some((kind) => cause instanceof kind), `a decoder failed: ${String(cause)}`);
    return undefined;
  }
}
