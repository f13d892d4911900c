import { SeededRandom } from '../kernel/seeded-random.ts';
import type { FaultPlan, Plan } from './plan.ts';

/** What the random numbers are for. */
const THREADS = 953;
/** The part of the runs in which nothing is blocked for too long, and nothing else goes wrong. */
const KEPT_PART = 0.4;
/** The part of the longest block that the thread outlasts for certain: its last heartbeat may be older than the block. */
const SURE_PART = 0.7;
const KINDS = ['block', 'block', 'thread stands still', 'thread ends'] as const;
const BLOCKS = ['block'] as const;
const LENGTHS = [20, 120, 400, 1_300, 3_000, 8_000];
const ENDS = ['thread stands still', 'thread ends'] as const;
const NOTHING_FAILS = { slow: 0, lostRequests: 0, lostReplies: 0, resent: 0, lostPushes: 0 } as const;

/** The same run, in which a thread of each process renews its leases. */
export function withThreads(plan: Plan): Plan {
  const random = new SeededRandom(plan.seed).fork(THREADS);
  const keepsAll = random.chance(KEPT_PART);
  // Who keeps its leases is blocked, or loses its thread.
  const isBlocked = random.chance(0.7);
  const maxBlockedMs = random.pick([100, 300, 1_000, 5_000]);
  const lengths = LENGTHS.filter((ms) => !keepsAll || ms < SURE_PART * maxBlockedMs);
  const blocks = Array.from({ length: random.between(1, 5) }, (): FaultPlan => {
    const at = random.between(0, plan.faultsEndAt);
    const process = random.between(0, plan.processes.length - 1);
    const ms = random.pick(lengths);
    const kind = random.pick(!keepsAll ? KINDS : isBlocked ? BLOCKS : ENDS);
    return kind === 'thread ends' ? { at, process, kind } : { at, process, kind, ms };
  });
  // Both threads read the same memory: what runs ahead of true time would read it before the other has written.
  const others = plan.faults.filter(({ kind }) => kind !== 'stall');
  const thread = { maxBlockedMs, keepsAll };
  // A cohort serves others with its lease, and looksAtLeases finds a belief that is stale.
  const threaded = { ...plan, cohort: undefined, looksAtLeases: random.chance(0.6), thread };
  if (!keepsAll) return { ...threaded, faults: [...others, ...blocks] };
  const { record } = plan;
  return {
    ...threaded,
    // Two in a row could be too long together.
    faults: blocks.filter(
      ({ process }, index) => blocks.findIndex((other) => other.process === process) === index,
    ),
    storeFaults: [],
    network: { ...plan.network, ...NOTHING_FAILS },
    record: record && { ...record, stale: 0, failed: 0 },
  };
}
