import { createLocks } from '@locks/core';
import { type Harness, harnessIn, startHarness } from '@locks/core/conformance';
import { type CallableProcess, machineNow, startProcess } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import { expect, test } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import { SeededRandom } from '../src/lab/random.ts';
import type { BlockReading, BlocksCommands } from './blocks-process.ts';

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Harnesses of the conformance suite, and the server that each needs. */
const stores = (
  [
    ['file', undefined],
    ['redis-ioredis', 'redis'],
    ['postgres-lease', 'postgres'],
    ['mysql', 'mysql'],
    ['etcd', 'etcd'],
    ['nats', 'nats'],
  ] as const
).filter(([, server]) => server === undefined || !missing.has(server));

/** The long variant has 200: `LOCKS_BLOCKS=200`. */
const BLOCKS = Number(process.env['LOCKS_BLOCKS'] ?? 10);
/** Blocks at a time, each of a process of its own. */
const PROCESSES = Math.min(5, BLOCKS);
const TTL_MS = 2_000;
const MAX_BLOCKED_MS = 2.5 * TTL_MS;
/** The last heartbeat before a block is no older than that. */
const HEARTBEAT_MS = MAX_BLOCKED_MS / 10;
/** What a busy machine may add. */
const SLACK_MS = 500;

/** A block of the event loop of a holder, for whose lock another process waits. */
interface Block extends BlockReading {
  readonly grantedAt: number;
}

test.each(stores)(
  '%s: a thread keeps leases through random blocks up to its bound, frees them after it, and nobody holds beside a holder',
  { timeout: 120_000 + BLOCKS * 4_000 },
  async (name) => {
    const harness = harnessIn((await import(harnessUrl(name).href)) as object) as Harness;
    const store = await startHarness(harness);
    process.env['LOCKS_BLOCKS_HARNESS'] = name;
    try {
      const seed = Number(process.env['LOCKS_SEED'] ?? Date.now() % 1_000_000);
      const random = new SeededRandom(seed);
      const lengths = Array.from({ length: BLOCKS }, () => random.between(0.2 * TTL_MS, 5 * TTL_MS));
      const blocks: Block[] = [];
      await using stack = new AsyncDisposableStack();
      const main = new URL('blocks-process.ts', import.meta.url);
      const holders: CallableProcess<BlocksCommands>[] = [];
      // One after the other: on a busy machine many that start at once are too late.
      while (holders.length < PROCESSES)
        holders.push(stack.use(await startProcess(main, [`${TTL_MS}`, `${MAX_BLOCKED_MS}`])));
      const work = async (holder: CallableProcess<BlocksCommands>): Promise<void> => {
        for (let ms = lengths.pop(); ms !== undefined; ms = lengths.pop())
          blocks.push(await blockOf(harness, holder, ms));
      };
      await Promise.all(holders.map(work));
      judge(blocks, `${name}, seed ${seed}`, harness.timing?.idleGapMs ?? 1_000);
    } finally {
      await store.teardown();
    }
  },
);

async function blockOf(
  harness: Harness,
  { call }: CallableProcess<BlocksCommands>,
  ms: number,
): Promise<Block> {
  await using locks = createLocks(await harness.createBackend(), { ttlMs: 30_000, waitMs: 60_000 });
  const name = `block ${process.pid} ${machineNow()}`;
  await call.acquire(name);
  const granted = locks
    .lock(name)
    .acquire()
    .then((lease) => ({ lease, grantedAt: machineNow() }));
  await waitUntil(async () => (await locks.inspect(name)).waiters.length === 1, { what: 'a waiter' });
  const reading = await call.block(ms);
  await call.release();
  const { lease, grantedAt } = await granted;
  await lease.release();
  return { ...reading, grantedAt };
}

function judge(blocks: readonly Block[], what: string, idleGapMs: number): void {
  const lengthOf = ({ blockedAt, readAt }: Block): number => readAt - blockedAt;
  const below = blocks.filter((block) => lengthOf(block) <= MAX_BLOCKED_MS - HEARTBEAT_MS);
  const above = blocks.filter((block) => lengthOf(block) > MAX_BLOCKED_MS + TTL_MS);
  const freeAfter = above.map(({ blockedAt, grantedAt }) => Math.round(grantedAt - blockedAt));
  const limitMs = MAX_BLOCKED_MS + TTL_MS + idleGapMs + SLACK_MS;
  const faults = {
    lost: below.filter(({ isHeld }) => !isHeld),
    overlaps: blocks.filter(({ isHeld, grantedAt, readAt }) => isHeld && grantedAt < readAt),
    // A holder that was blocked for longer than its lease can have lasted knows that it has lost it.
    believed: above.filter(({ isHeld }) => isHeld),
    late: freeAfter.filter((ms) => ms > limitMs),
  };
  console.log(
    `${what}: ${blocks.length} blocks; ${below.length} below the bound, ${faults.lost.length} lost; ${above.length} above it, ` +
      `free after at most ${Math.max(0, ...freeAfter)} ms of ${limitMs} ms; ${faults.overlaps.length} overlaps`,
  );
  expect(faults).toEqual({ lost: [], overlaps: [], believed: [], late: [] });
}
