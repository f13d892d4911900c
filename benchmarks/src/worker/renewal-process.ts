// `node renewal-process.ts thread|loop` with REDIS_URL: the figures of one process for `bench renewal-thread`, as JSON.
import { createLocks } from '@locks/core';
import { renewalThread } from '@locks/core/renewal-thread';
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import makeBackend from './renewal-backend.ts';

/** What one process measured. */
export interface RenewalFigures {
  /** From `createLocks` to the first lease, in milliseconds. */
  readonly startMs: number;
  /** The memory of the process beside one lease, in megabytes. */
  readonly rssMegabytes: number;
  /** An acquire and its release, one after the other. */
  readonly pairsPerSecond: number;
  /** Processor time of one renewal of one of 200 leases, which share their requests, of all threads. */
  readonly renewalMicros: number;
  /** One reading of `validForMs`, in nanoseconds. */
  readonly validForNanos: number;
}

const WARM_UP_PAIRS = 3_000;
const PAIRS = 12_000;
const LEASES = 200;
const TTL_MS = 3_000;
const RENEWING_MS = 4_000;
/** A lease is renewed after a third of its ttl. */
const RENEWALS = LEASES * (RENEWING_MS / (TTL_MS / 3));
const READINGS = 2_000_000;
/** Until a heap that has just grown is at rest. */
const SETTLE_MS = 500;

const startedAt = performance.now();
const locks = createLocks(
  makeBackend(),
  process.argv[2] === 'thread'
    ? {
        renewalThread: renewalThread(new URL('./renewal-backend.ts', import.meta.url), {
          maxBlockedMs: 60_000,
        }),
      }
    : {},
);
const first = await locks.lock('first').acquire();
const startMs = performance.now() - startedAt;
await delay(SETTLE_MS);
const rssMegabytes = process.memoryUsage().rss / 1e6;

let sum = 0;
const readFrom = process.threadCpuUsage();
for (let reading = 0; reading < READINGS; reading += 1) sum += first.validForMs;
const read = process.threadCpuUsage(readFrom);
if (Number.isNaN(sum)) throw new Error('A lease without a validity.');
await first.release();

const pairs = async (count: number): Promise<void> => {
  const lock = locks.lock('pair');
  for (let pair = 0; pair < count; pair += 1) await (await lock.acquire()).release();
};
await pairs(WARM_UP_PAIRS);
const pairsFrom = performance.now();
await pairs(PAIRS);
const pairsPerSecond = (PAIRS / (performance.now() - pairsFrom)) * 1e3;

const leases = await Promise.all(
  Array.from({ length: LEASES }, (_, index) => locks.lock(`held:${index}`).acquire({ ttlMs: TTL_MS })),
);
await delay(SETTLE_MS);
const renewedFrom = process.cpuUsage();
await delay(RENEWING_MS);
const { user, system } = process.cpuUsage(renewedFrom);
await Promise.all(leases.map((lease) => lease.release()));
await locks.close();
const figures: RenewalFigures = {
  startMs,
  rssMegabytes,
  pairsPerSecond,
  renewalMicros: (user + system) / RENEWALS,
  validForNanos: ((read.user + read.system) / READINGS) * 1e3,
};
writeSync(1, JSON.stringify(figures));
// The client of the backend is open still.
process.exit();
