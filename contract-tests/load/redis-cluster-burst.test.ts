import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisCluster, startCluster } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { figure, untilWaiting } from '../src/fault-lab/observe.ts';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import Lab from '../redis-faults/lab.ts';

const CHECK_MS = 1_000;
const SLACK_MS = 1_000;

let cluster: RedisCluster;
let address: RedisAddress;

beforeAll(async () => {
  cluster = await startCluster();
  address = { kind: 'cluster', roots: cluster.roots };
}, 60_000);

afterAll(async () => cluster.stop());

describe.each(libraries)(
  'waiters of many slots that come at once, with %s',
  { timeout: 60_000 },
  (library) => {
    it('are all there when their locks are released, also those whose turn to be checked had not come', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address), await lab.locks(address)];
      const names = Array.from({ length: 700 }, (_, index) => `burst ${library} ${index}`);
      const leases = await Promise.all(names.map((name) => holder.lock(name).acquire()));
      const entered = names.map((name) => waiter.lock(name).acquire({ waitMs: 50_000 }));
      await Promise.all(names.map((name) => untilWaiting(waiter, name)));
      // Longer than a waiter counts as alive after it was queued, and less than a round of checks takes.
      await sleep(3 * CHECK_MS + 500);
      await Promise.all(leases.map((lease) => lease.release()));
      const releasedAt = performance.now();
      await Promise.all((await Promise.all(entered)).map((lease) => lease.release()));
      const gapMs = performance.now() - releasedAt;
      figure(`cluster: ${names.length} locks handed off after a burst, with ${library}`, gapMs);
      expect(gapMs).toBeLessThan(3 * SLACK_MS);
    });
  },
);
