import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LockManager } from '@locks/core';
import { expect, it } from 'vitest';
import { readRunPlan, run } from '../src/commands/run.ts';
import { folder } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();

/** A manager whose `acquire` is answered, and then `granted` is called before its caller gets the lease. */
function interrupting(locks: LockManager, granted: () => void): LockManager {
  const lock: LockManager['lock'] = (name) => {
    const one = locks.lock(name);
    return new Proxy(one, {
      get: (target, key) =>
        key === 'acquire'
          ? async (options?: object) => {
              const lease = await target.acquire(options);
              granted();
              return lease;
            }
          : (Reflect.get(target, key) as unknown),
    });
  };
  return new Proxy(locks, { get: (target, key) => (key === 'lock' ? lock : Reflect.get(target, key)) });
}

it.each([
  ['SIGTERM', 128 + 15],
  ['SIGINT', 128 + 2],
] as const)('%s between the grant and the start of the command: it does not start', async (signal, code) => {
  const { locks } = redis;
  const file = join(folder(), 'ran');
  const plan = readRunPlan(['job'], ['touch', file], {});
  // As Node reports a signal of the operating system.
  const interrupted = interrupting(locks, () => process.emit(signal));
  expect(await run(interrupted, plan, () => undefined)).toBe(code);
  expect(existsSync(file)).toBe(false);
  expect(await locks.isLocked('job')).toBe(false);
  // Without a signal the same plan runs.
  expect(await run(locks, plan, () => undefined)).toBe(0);
  expect(existsSync(file)).toBe(true);
});
