import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Harness } from '@locks/core/conformance';
import { expect, test } from 'vitest';
import type { Cost } from './many-waiters-process.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('many-waiters-process.ts', import.meta.url));

const crowds: readonly (readonly [string, number])[] = [
  ['memory', 10_000],
  ['redis-ioredis', 10_000],
  ['redis-node', 10_000],
  ['postgres-lease', 10_000],
];

test.each(crowds)(
  '%s: %i waiters of one process on one lock give up in a second, and no other lease is lost',
  {
    timeout: 120_000,
  },
  async (name, count) => {
    const { default: harness } = (await import(`../src/harnesses/${name}.ts`)) as { default: Harness };
    const store = await harness.setup?.();
    try {
      const env = { ...process.env, ...store?.env };
      const { stdout } = await run(process.execPath, ['--expose-gc', script, name, String(count)], { env });
      const cost = JSON.parse(stdout) as Cost;
      console.info(name, cost);
      expect(cost.lost).toBeUndefined();
      expect(cost.ends).toEqual({ LOCK_TIMEOUT: count });
      expect(cost.busiestMs).toBeLessThanOrEqual(200);
      // The store needs no longer for each where there are many.
      expect(cost.emptyMs).toBeLessThan(5_000);
      expect(cost.heapMb).toBeLessThanOrEqual(5);
    } finally {
      await store?.teardown();
    }
  },
);
