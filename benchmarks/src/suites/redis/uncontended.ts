import type { Contender } from '../../contenders/contender.ts';
import type { Stage } from '../../conduct/stage.ts';
import { readServerTimes, spentOn } from '../../measure/command-stats.ts';
import { countRequests } from '../../measure/monitor-tap.ts';
import { quantile } from '../../measure/quantiles.ts';
import type { LoopResult } from '../../worker/methods.ts';
import { countedOf } from './counted.ts';
import type { Comparison, ContenderResult, CountedRequests, Round } from './result.ts';
import type { Settings } from './settings.ts';

interface Entry {
  readonly contender: Contender;
  readonly counted: CountedRequests;
  readonly run: (forMs: number) => Promise<LoopResult>;
  readonly rounds: Round[];
}

interface Block {
  readonly result: LoopResult;
  readonly serverMicros: number;
  readonly serverCpuMicros: number;
}

/** Locks that nobody else wants: one name again and again, or many names at once. */
export async function compareUncontended(
  stage: Stage,
  contenders: readonly Contender[],
  settings: Settings,
  lanes: number,
): Promise<Comparison> {
  const entries: Entry[] = [];
  for (const contender of contenders) entries.push(await prepare(stage, contender, settings, lanes));
  for (let round = 0; round < settings.rounds; round += 1) {
    const order = round % 2 === 0 ? entries : entries.toReversed();
    const blocks = new Map<Entry, Block[]>();
    // There and back again: what drifts during a round is the same for all.
    for (const entry of [...order, ...order.toReversed()]) {
      const done = blocks.get(entry) ?? [];
      blocks.set(entry, [...done, await timedBlock(stage, entry, settings.blockMs)]);
    }
    for (const [entry, done] of blocks) entry.rounds.push(summarise(done));
  }
  return {
    id: lanes === 1 ? 'sequential' : 'keys',
    title: lanes === 1 ? 'Sequential: one lock again and again' : `${lanes} keys at once`,
    contended: false,
    processes: 1,
    contenders: entries.map(({ contender: { name, kind, floor }, counted, rounds }): ContenderResult => {
      return { name, kind, floor, rounds, counted };
    }),
  };
}

async function prepare(
  stage: Stage,
  contender: Contender,
  settings: Settings,
  lanes: number,
): Promise<Entry> {
  const [worker] = await stage.crew(contender.name, 1);
  const names = Array.from({ length: lanes }, (_, lane) => `bench:${contender.name}:${lanes}:${lane}`);
  const run = async (forMs: number): Promise<LoopResult> => {
    if (worker === undefined) throw new Error('There is no client process.');
    return await worker.call('loop', { names, forMs });
  };
  await run(settings.warmUpMs);
  const [requests, result] = await countRequests(stage.control, () => run(settings.blockMs));
  const counted = countedOf(requests, result.pairs, result.elapsedMs);
  return { contender, counted, run, rounds: [] };
}

async function timedBlock(stage: Stage, { run, counted }: Entry, forMs: number): Promise<Block> {
  const before = await readServerTimes(stage.control);
  const result = await run(forMs);
  const after = await readServerTimes(stage.control);
  return {
    result,
    serverMicros: spentOn(Object.keys(counted.byCommand), before, after),
    serverCpuMicros: after.cpu - before.cpu,
  };
}

function summarise(blocks: readonly Block[]): Round {
  const sum = (of: (block: Block) => number): number => blocks.reduce((total, block) => total + of(block), 0);
  const pairs = sum(({ result }) => result.pairs);
  const waits = blocks.flatMap(({ result }) => [...result.waits]);
  return {
    perSecond: (1000 * pairs) / sum(({ result }) => result.elapsedMs),
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    serverMicros: sum(({ serverMicros }) => serverMicros) / pairs,
    serverCpuMicros: sum(({ serverCpuMicros }) => serverCpuMicros) / pairs,
    clientCpuMicros: sum(({ result }) => result.cpuMicros) / pairs,
    overlaps: 0,
    cut: false,
  };
}
