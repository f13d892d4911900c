import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Harness } from '@locks/core/conformance';
import { expect, test } from 'vitest';
import type { Cost } from './many-waiters-process.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('many-waiters-process.ts', import.meta.url));

const WAITERS = 10_000;

// With the milliseconds that they have to enqueue on a busy machine. PostgreSQL looks at waiters of more than 10 s in another way.
const stores: readonly (readonly [string, number])[] = [
  ['memory', 3_000],
  ['redis-ioredis', 8_000],
  ['redis-node', 8_000],
  ['postgres-lease', 12_000],
  ['mysql', 10_000],
  ['sqlite', 10_000],
];

test.each(stores)(
  '%s: 10 000 waiters of one process on one lock give up in a second, and no other lease is lost',
  {
    timeout: 120_000,
  },
  async (name, enqueueMs) => {
    const { default: harness } = (await import(`../src/harnesses/${name}.ts`)) as { default: Harness };
    const store = await harness.setup?.();
    try {
      const env = { ...process.env, ...store?.env };
      const { stdout } = await run(
        process.execPath,
        ['--expose-gc', script, name, String(WAITERS), String(enqueueMs)],
        { env },
      );
      const cost = JSON.parse(stdout) as Cost;
      console.info(name, cost);
      expect(cost.lost).toBeUndefined();
      expect(cost.ends).toEqual({ LOCK_TIMEOUT: WAITERS });
      expect(cost.busiestMs).toBeLessThanOrEqual(200);
      // The store needs no longer for each where there are many.
      expect(cost.emptyMs).toBeLessThan(5_000);
      expect(cost.heapMb).toBeLessThanOrEqual(5);
    } finally {
      await store?.teardown();
    }
  },
);
