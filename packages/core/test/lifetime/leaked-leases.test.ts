import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { locksOn } from '../fixture.ts';
import { scriptedBackend } from '../scripted-backend.ts';

setFlagsFromString('--expose_gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('one warning tells of leases that nobody can release, and none of those that somebody has', {
  timeout: 30_000,
}, async () => {
  const warnings: unknown[] = [];
  vi.spyOn(process, 'emitWarning').mockImplementation((...args: unknown[]) => {
    // Other tests of this process leave leases to the garbage, too.
    if (/"(?:kept|released|leaked|leaked too)"/.test(String(args[0]))) warnings.push(args);
  });
  const backend = scriptedBackend();
  const kept = await locksOn(backend, { ttlMs: 3_000 }).lock('kept').acquire();
  const released = locksOn(backend, { ttlMs: 3_000 });
  await (await released.lock('released').acquire()).release();
  const leaking = locksOn(backend, { ttlMs: 3_000 });
  for (const name of ['leaked', 'leaked too']) void leaking.lock(name).acquire();
  await vi.waitFor(
    () => {
      collectGarbage();
      expect(warnings).not.toEqual([]);
    },
    { timeout: 20_000, interval: 20 },
  );
  for (let round = 0; round < 10; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectGarbage();
  }
  expect(warnings).toEqual([
    [expect.stringMatching(/^The lease on "leaked( too)?" is renewed/), { code: 'LOCKS_LEAKED_LEASE' }],
  ]);
  await kept.release();
});
