import type { Contender } from '../../contenders/contender.ts';
import type { MemoryResult } from './result.ts';
import type { RedisStage } from './redis-stage.ts';
import type { Settings } from './settings.ts';

const LANES = 64;
const TOKEN_KEYS = 'locks:token:{*}';

/** Very many names, each acquired and released once: what is left of them. */
export async function measureMemory(
  stage: RedisStage,
  ours: Contender,
  settings: Settings,
): Promise<MemoryResult> {
  const worker = stage.startWorker(['--expose-gc']);
  try {
    await worker.call('openLocks', ours.store, ours.name, stage.url, 30_000);
    const startedAt = performance.now();
    const { before, after } = await worker.call('churn', settings.names, LANES);
    const seconds = (performance.now() - startedAt) / 1000;
    const keysAfter = await countKeys(stage);
    return {
      contender: ours.name,
      names: settings.names,
      perSecond: settings.names / seconds,
      heapGrowthBytes: after - before,
      tokenKeys: keysAfter.token,
      otherKeys: keysAfter.other,
    };
  } finally {
    await stage.dismiss(worker);
  }
}

async function countKeys({ server: { control } }: RedisStage): Promise<{ token: number; other: number }> {
  const tokens = new Set<string>();
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'MATCH', TOKEN_KEYS, 'COUNT', 1000);
    for (const key of keys) tokens.add(key);
    cursor = next;
  } while (cursor !== '0');
  return { token: tokens.size, other: (await control.dbsize()) - tokens.size };
}
