import type { Contender } from '../../contenders/contender.ts';
import type { MemoryResult } from './result.ts';
import type { RedisTestbed } from './redis-testbed.ts';
import type { Settings } from './settings.ts';

const LANES = 64;
const TOKEN_KEYS = 'locks:token:{';

/** Very many names, each acquired and released once: what is left of them. */
export async function measureMemory(
  testbed: RedisTestbed,
  ours: Contender,
  settings: Settings,
): Promise<MemoryResult> {
  const worker = testbed.startWorker(['--expose-gc']);
  try {
    await worker.call.openLocks(ours.store, ours.name, testbed.url, 30_000);
    // Contenders of earlier rows may have left some of theirs.
    const { others: theirs } = await keysOf(testbed);
    const startedAt = performance.now();
    const { before, after } = await worker.call.churn(settings.names, LANES);
    const seconds = (performance.now() - startedAt) / 1000;
    const { tokens, others } = await keysOf(testbed);
    return {
      contender: ours.name,
      names: settings.names,
      perSecond: settings.names / seconds,
      heapGrowthBytes: after - before,
      tokenKeys: tokens.size,
      otherKeys: [...others].filter((key) => !theirs.has(key)).length,
    };
  } finally {
    await testbed.end(worker);
  }
}

async function keysOf({ server: { control } }: RedisTestbed): Promise<{
  readonly tokens: ReadonlySet<string>;
  readonly others: ReadonlySet<string>;
}> {
  const tokens = new Set<string>();
  const others = new Set<string>();
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'COUNT', 1000);
    for (const key of keys) (key.startsWith(TOKEN_KEYS) ? tokens : others).add(key);
    cursor = next;
  } while (cursor !== '0');
  return { tokens, others };
}
