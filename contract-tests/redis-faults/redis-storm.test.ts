import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import type { Worker } from '../src/fault-lab/fault-lab.ts';
import type { LockKind } from '../src/fault-lab/worker/commands.ts';
import Lab from './lab.ts';
import { assertNoOverlap, assertTokensRise, assertWithinLimit, together } from './load-history.ts';

/** `STORM_MS=600000` looks for what five seconds do not find. */
const STORM_MS = Number(process.env['STORM_MS'] ?? 5_000);
const TTL_MS = 800;
const LIMIT = 3;

const RESOURCES = ['stock', 'report', 'pool', 'till'];
const KINDS: Readonly<Record<string, readonly LockKind[]>> = {
  report: ['shared', 'exclusive', 'shared'],
  pool: [
    { permits: LIMIT, weight: 1 },
    { permits: LIMIT, weight: 2 },
  ],
};

interface Fault {
  readonly what: string;
  do(redis: RedisServer, workers: readonly Worker[]): Promise<unknown>;
}

/** None of them takes data from the server: nothing excuses two inside. */
const FAULTS: readonly Fault[] = [
  {
    what: 'one connection killed',
    async do(redis) {
      const list = String(await redis.command('CLIENT', 'LIST'));
      const ids = [...list.matchAll(/^id=(\d+) /gm)].map(([, id]) => id as string);
      await redis.command('CLIENT', 'KILL', 'ID', one(ids)).catch(() => undefined);
    },
  },
  {
    what: 'all connections killed',
    do: (redis) => redis.command('CLIENT', 'KILL', 'TYPE', one(['normal', 'pubsub'])),
  },
  {
    what: 'the server silent',
    async do(redis) {
      const ms = randomInt(20, 400);
      await redis.command('CLIENT', 'PAUSE', ms, one(['ALL', 'WRITE']));
      await sleep(ms);
    },
  },
  { what: 'scripts flushed', do: (redis) => redis.command('SCRIPT', 'FLUSH') },
  {
    what: 'a process frozen, one time in three past its ttl',
    async do(_redis, workers) {
      const worker = one(workers);
      worker.freeze();
      await sleep(randomInt(3) === 0 ? TTL_MS + randomInt(600) : randomInt(300));
      worker.thaw();
    },
  },
];

describe('a storm of faults, at random', { timeout: STORM_MS + 60_000 }, () => {
  it('lets no two in that exclude each other, nor more than there are permits; tokens rise', async () => {
    await using lab = new Lab();
    const redis = await lab.server();
    const backend = { maxPollMs: 200 };
    const workers = await Promise.all(
      [...libraries, ...libraries].map((library) => lab.worker(redis, { library, ttlMs: TTL_MS, backend })),
    );
    const load = { resources: RESOURCES, kinds: KINDS, loops: 4, holdMs: 3, waitMs: 20_000 };
    await Promise.all(workers.map((worker) => worker.call.startLoad(load)));
    const met = new Map<string, number>();
    for (const end = performance.now() + STORM_MS; performance.now() < end; ) {
      await sleep(randomInt(60));
      const fault = one(FAULTS);
      await fault.do(redis, workers);
      met.set(fault.what, (met.get(fault.what) ?? 0) + 1);
    }
    const { sections, failures, unhandled } = together(
      await Promise.all(workers.map((worker) => worker.call.stopLoad())),
    );
    const faults = [...met].map(([what, times]) => `${times} × ${what}`).join(', ');
    process.stdout.write(`    ${sections.length} sections, ${failures.length} failures; ${faults}\n`);
    assertNoOverlap(sections);
    assertWithinLimit(sections, LIMIT);
    assertTokensRise(sections);
    // So few are let in on a busy machine, too: fewer would be judged by nothing.
    expect(sections.length).toBeGreaterThan(STORM_MS / 100);
    expect(unhandled).toEqual([]);
    // A release whose connection broke, and the lease of a process that stood still.
    for (const { what } of failures) expect(what).toMatch(/^LOCK_BACKEND Could not release|^LOCK_LOST /);
    await assertNothingIsLeft(redis);
  });
});

/** Nobody holds or waits. Beside the token keys and the layout, what a dead holder of permits was noted in goes by itself. */
async function assertNothingIsLeft(redis: RedisServer): Promise<void> {
  await sleep(TTL_MS);
  const keys = (await redis.command('KEYS', '*')) as string[];
  expect(keys.filter((key) => /^lock::|:q$/.test(key))).toEqual([]);
  for (const key of keys.filter((key) => !/^locks:token:|^lock:\{layout\}$/.test(key)))
    expect(await redis.command('PTTL', key), key).toBeGreaterThan(0);
}

function one<T>(of: readonly T[]): T {
  return of[randomInt(of.length)] as T;
}
