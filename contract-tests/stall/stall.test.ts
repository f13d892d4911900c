import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Harness, harnessIn } from '@locks/core/conformance';
import { expect, test } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import type { StallReport } from './stall-process.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('stall-process.ts', import.meta.url));

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Harnesses of the conformance suite, and the server that each needs. */
const stores = (
  [
    ['memory', undefined],
    ['sqlite', undefined],
    ['redis-ioredis', 'redis'],
    ['redis-node', 'redis'],
    ['redis-glide', 'redis'],
    ['upstash', 'redis'],
    ['postgres-lease', 'postgres'],
    ['postgres-js-lease', 'postgres'],
    ['postgres-advisory', 'postgres'],
    ['mysql', 'mysql'],
    ['etcd', 'etcd'],
    ['zookeeper', 'zookeeper'],
    ['nats', 'nats'],
    ['mongodb', 'mongodb'],
    ['dynamodb', 'dynamodb'],
    ['s3', 's3'],
  ] as const
).filter(([, server]) => server === undefined || !missing.has(server));

/** Longer than `waitMs` and the first part of a release's budget, and than all of that. */
const BLOCKS_MS = [500, 1_200];
const ROUNDS = 2;

test.concurrent.each(stores)(
  '%s: an event loop that stands still right after a call, or while it is under way, loses neither the call nor a lock',
  { timeout: 300_000 },
  async (name) => {
    const harness = harnessIn((await import(harnessUrl(name).href)) as object) as Harness;
    const store = await harness.setup?.();
    try {
      const env = { ...process.env, ...store?.env };
      for (const blockMs of BLOCKS_MS) {
        const { stdout } = await run(process.execPath, [script, name, `${blockMs}`, `${ROUNDS}`], { env });
        const report = JSON.parse(stdout) as StallReport;
        const failed = Object.entries(report).filter(([, { rejected, left }]) => rejected + left > 0);
        expect(Object.fromEntries(failed), `${blockMs} ms`).toEqual({});
        expect(Object.keys(report)).toHaveLength(7);
      }
    } finally {
      await store?.teardown();
    }
  },
);
