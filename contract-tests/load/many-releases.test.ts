import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Harness } from '@locks/core/conformance';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const script = fileURLToPath(new URL('many-releases-process.ts', import.meta.url));

const READERS = 10_000;

/** With the number of names: PostgreSQL has room for some 6 400 advisory locks by default. */
const stores: readonly (readonly [string, number])[] = [
  ['memory', 10_000],
  ['sqlite', 10_000],
  ['redis-ioredis', 10_000],
  ['redis-node', 10_000],
  ['postgres-lease', 10_000],
  ['postgres-advisory', 4_000],
  ['mysql', 10_000],
  ['zookeeper', 10_000],
  ['etcd', 10_000],
];

test.each(stores)(
  '%s: %i names, and 10 000 readers of one, are all released in one iteration of the event loop',
  { timeout: 300_000 },
  async (name, names) => {
    const { default: harness } = (await import(`../src/harnesses/${name}.ts`)) as { default: Harness };
    const store = await harness.setup?.();
    try {
      const env = { ...process.env, ...store?.env };
      const { stdout } = await run(process.execPath, [script, name, String(names), String(READERS)], { env });
      expect(JSON.parse(stdout)).toEqual({ failed: 0, left: 0 });
    } finally {
      await store?.teardown();
    }
  },
);
