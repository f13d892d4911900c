import type { Contender } from '../contenders/contender.ts';
import type { Testbed } from '../conduct/testbed.ts';
import type { Spent } from '../measure/meter.ts';
import { quantile } from '../measure/quantiles.ts';
import type { LoopResult } from '../worker/methods.ts';
import {
  type CompareSettings,
  type Comparison,
  type ContenderResult,
  countedOf,
  type CountedRequests,
  type Round,
} from './comparison.ts';

interface Entry {
  readonly contender: Contender;
  readonly counted: CountedRequests;
  readonly run: (forMs: number) => Promise<LoopResult>;
  readonly rounds: Round[];
}

interface Block {
  readonly result: LoopResult;
  /** Where the server reports it. */
  readonly cost: Spent | undefined;
}

/** How many locks one process takes at once, again and again. */
export interface LoopRow {
  readonly id: string;
  readonly title: string;
  readonly lanes: number;
}

/** Locks that nobody else wants: one name again and again, or many names at once. */
export async function compareUncontended(
  testbed: Testbed,
  contenders: readonly Contender[],
  settings: CompareSettings,
  { id, title, lanes }: LoopRow,
): Promise<Comparison> {
  const entries: Entry[] = [];
  for (const contender of contenders) entries.push(await prepare(testbed, contender, settings, lanes));
  for (let round = 0; round < settings.rounds; round += 1) {
    const order = round % 2 === 0 ? entries : entries.toReversed();
    const blocks = new Map<Entry, Block[]>();
    // Forwards and then backwards, so that a drift during a round affects all contenders alike.
    for (const entry of [...order, ...order.toReversed()]) {
      const done = blocks.get(entry) ?? [];
      blocks.set(entry, [...done, await timedBlock(testbed, entry, settings)]);
    }
    for (const [entry, done] of blocks) entry.rounds.push(summarise(done));
  }
  return {
    id,
    title,
    contended: false,
    processes: 1,
    contenders: entries.map(({ contender: { name, kind, floor }, counted, rounds }): ContenderResult => {
      return { name, kind, floor, rounds, counted };
    }),
  };
}

async function prepare(
  testbed: Testbed,
  contender: Contender,
  settings: CompareSettings,
  lanes: number,
): Promise<Entry> {
  const [worker] = await testbed.workersOf(contender, 1);
  const names = Array.from({ length: lanes }, (_, lane) => `bench:${contender.name}:${lanes}:${lane}`);
  const run = async (forMs: number): Promise<LoopResult> => {
    if (worker === undefined) throw new Error('There is no client process.');
    return await worker.call.loop({ names, forMs });
  };
  await run(settings.warmUpMs);
  const [requests, result] = await testbed.meter.count(() => run(settings.blockMs));
  const counted = countedOf(requests, result.pairs, result.elapsedMs);
  return { contender, counted, run, rounds: [] };
}

async function timedBlock(
  testbed: Testbed,
  { run, counted }: Entry,
  { leadInMs, blockMs }: CompareSettings,
): Promise<Block> {
  await run(leadInMs);
  const spent = await testbed.meter.watch?.();
  const result = await run(blockMs);
  return { result, cost: await spent?.(Object.keys(counted.byCommand)) };
}

function summarise(blocks: readonly Block[]): Round {
  const sum = (of: (block: Block) => number): number => blocks.reduce((total, block) => total + of(block), 0);
  const pairs = sum(({ result }) => result.pairs);
  const waits = blocks.flatMap(({ result }) => [...result.waits]);
  return {
    perSecond: (1000 * pairs) / sum(({ result }) => result.elapsedMs),
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    ...(blocks.every(({ cost }) => cost !== undefined) && {
      serverMicros: sum(({ cost }) => cost?.commandMicros ?? 0) / pairs,
    }),
    ...(blocks.every(({ cost }) => cost?.cpuMicros !== undefined) && {
      serverCpuMicros: sum(({ cost }) => cost?.cpuMicros ?? 0) / pairs,
    }),
    clientCpuMicros: sum(({ result }) => result.cpuMicros) / pairs,
    overlaps: 0,
    cut: false,
  };
}
