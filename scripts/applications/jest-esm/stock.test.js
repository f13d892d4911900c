import { createLocks, isLockError, LockError } from '@locks/core';
import { memoryBackend } from '@locks/memory';

// Jest cannot load a module by `import` and by `require` in one graph, which Node can: this comes when core is there.
const { coreOfDependency, deduct, failure } = await import('../two-copies/dependency.cjs');

test('this module and its CommonJS dependency have one copy of core', () => {
  expect(coreOfDependency.createLocks).toBe(createLocks);
});

test('the dependency re-enters the lock that this module holds', async () => {
  const locks = createLocks(memoryBackend(), { reentrant: true });
  const counts = await locks.lock('sku:42').run(() => deduct(locks, 'sku:42'));
  expect(counts).toEqual({ holdCount: 3 });
  await locks.close();
});

test('errors of the other copy are recognised', () => {
  expect(isLockError(failure(), 'LOCK_TIMEOUT')).toBe(true);
  expect(failure()).toBeInstanceOf(LockError);
});
