import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { LockManager } from '@locks/core';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import Lab from '../redis-faults/lab.ts';

const NAMES = 200_000;
const AT_ONCE = 256;
const SLOTS = 16_384;

/** Takes and releases every name of a range, many at once. */
async function churn(locks: LockManager, from: number, to: number): Promise<void> {
  let next = from;
  const work = async (): Promise<void> => {
    for (let index = next++; index < to; index = next++) {
      const lease = await locks.lock(`name ${index}`).acquire();
      await lease.release();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function heapBytes(): Promise<number> {
  // Twice, with a iteration of the event loop between: what finalizers free is collected by the second.
  collectGarbage();
  await new Promise((resolve) => setTimeout(resolve, 50));
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe.each(libraries)('memory, with %s', { timeout: 120_000 }, (library) => {
  it('200 000 names taken and released leave token keys alone, and nothing in the process', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const locks = await lab.locks(redis);
    // Fills what grows with slots, not with names: token keys, hash tags.
    await churn(locks, 0, NAMES / 4);
    const before = await heapBytes();
    await churn(locks, NAMES / 4, NAMES);
    const grown = (await heapBytes()) - before;
    process.stdout.write(
      `    heap of ${library} after ${NAMES} names: ${Math.round(grown / 1024)} kB more\n`,
    );
    expect(grown).toBeLessThan(5 * 2 ** 20);
    const others = await redis.command('EVAL', OTHER_THAN_TOKENS, 0);
    expect(others).toEqual(['lock:{layout}']);
    const left = Number(await redis.command('DBSIZE'));
    expect(left - 1).toBeLessThanOrEqual(SLOTS);
  });
});

const OTHER_THAN_TOKENS = `
local others = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if not string.find(key, '^locks:token:{%d+}$') then others[#others + 1] = key end
end
return others`;
