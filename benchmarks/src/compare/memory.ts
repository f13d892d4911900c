import type { Testbed } from '../conduct/testbed.ts';
import type { Contender } from '../contenders/contender.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';

export interface MemoryResult {
  readonly contender: string;
  readonly names: number;
  readonly perSecond: number;
  readonly heapGrowthBytes: number;
  readonly tokenKeys: number;
  /** The keys that are left in Redis beside the token keys. */
  readonly otherKeys: number;
}

const LANES = 64;
const TOKEN_KEYS = 'locks:token:{';

/** Very many names, each acquired and released once: what is left of them. */
export async function measureMemory(
  testbed: Testbed,
  ours: Contender,
  { names }: { readonly names: number },
): Promise<MemoryResult> {
  const worker = testbed.startWorker(['--expose-gc']);
  try {
    await worker.call.openLocks(ours.store, ours.name, testbed.url, 30_000);
    // Contenders of earlier rows may have left some of theirs.
    const { others: theirs } = await keysOf(testbed);
    const startedAt = performance.now();
    const { before, after } = await worker.call.churn(names, LANES);
    const seconds = (performance.now() - startedAt) / 1000;
    const { tokens, others } = await keysOf(testbed);
    return {
      contender: ours.name,
      names,
      perSecond: names / seconds,
      heapGrowthBytes: after - before,
      tokenKeys: tokens.size,
      otherKeys: [...others].filter((key) => !theirs.has(key)).length,
    };
  } finally {
    await testbed.end(worker);
  }
}

async function keysOf({ server }: Testbed): Promise<Record<'tokens' | 'others', ReadonlySet<string>>> {
  const tokens = new Set<string>();
  const others = new Set<string>();
  for await (const key of server.keys?.() ?? []) (key.startsWith(TOKEN_KEYS) ? tokens : others).add(key);
  return { tokens, others };
}

export function memorySection(memory: readonly MemoryResult[]): Section {
  return {
    title: 'Memory: distinct names acquired and released, 64 at once',
    table: tableOf(memory, [
      ['', ({ contender }) => contender],
      ['names', ({ names }) => whole(names)],
      ['pairs/s', ({ perSecond }) => whole(perSecond)],
      ['heap growth MB', ({ heapGrowthBytes }) => (heapGrowthBytes / 2 ** 20).toFixed(2)],
      ['token keys left', ({ tokenKeys }) => whole(tokenKeys)],
      ['other keys left', ({ otherKeys }) => whole(otherKeys)],
    ]),
  };
}
