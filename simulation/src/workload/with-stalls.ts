import { SeededRandom } from '../kernel/seeded-random.ts';
import { STALL_PLACES } from '../process/stall.ts';
import type { FaultPlan, OperationPlan, Plan } from './plan.ts';

/** What the random numbers are for. */
const STALLS = 952;
/** The part of the runs in which processes stand still in the middle of an iteration of their event loops. */
const STALLED_PART = 0.12;
/** The part of these in which nothing else goes wrong: there everything that is asked of a store is answered. */
const ALONE_PART = 0.6;
const NOTHING_FAILS = { slow: 0, lostRequests: 0, lostReplies: 0, resent: 0, lostPushes: 0 } as const;

/** The same run, in some of them with processes that stand still in the middle of what they do. */
export function withStalls(plan: Plan): Plan {
  const random = new SeededRandom(plan.seed).fork(STALLS);
  if (!random.chance(STALLED_PART)) return plan;
  const isAlone = random.chance(ALONE_PART);
  const latest = isAlone ? Math.min(plan.faultsEndAt, 600) : plan.faultsEndAt;
  const stalls = Array.from(
    { length: random.between(1, 4) },
    (): FaultPlan => ({
      at: random.between(0, latest),
      process: random.between(0, plan.processes.length - 1),
      kind: 'stall',
      ms: random.pick([20, 120, 400, 1_300, 1_300, 3_000]),
      place: random.pick(STALL_PLACES),
      passes: random.pick([0, 0, 1, 2, 3, random.between(0, 20)]),
    }),
  );
  if (!isAlone) return { ...plan, faults: [...plan.faults, ...stalls, ...whileUnreached(plan, random)] };
  const { record } = plan;
  // Leases that outlast the stalls, or most of them not.
  const ttlMs = random.pick([0, 4_000, 10_000]);
  return {
    ...(ttlMs === 0 ? plan : withTtl(plan, ttlMs)),
    faults: stalls,
    storeFaults: [],
    network: { ...plan.network, ...NOTHING_FAILS },
    record: record && { ...record, stale: 0, failed: 0 },
  };
}

/** Those whose store cannot be reached stand still, too: between two attempts, for longer than anybody else would pause. */
function whileUnreached({ faults }: Plan, random: SeededRandom): FaultPlan[] {
  return faults.flatMap((fault): FaultPlan[] => {
    if (fault.kind !== 'store away' && fault.kind !== 'partition') return [];
    const at = fault.at + random.between(0, Math.ceil(fault.ms));
    return [{ at, process: fault.process, kind: 'pause', ms: random.pick([400, 3_000]) }];
  });
}

function withTtl(plan: Plan, ttlMs: number): Plan {
  const lasting = (operation: OperationPlan): OperationPlan => ({ ...operation, ttlMs });
  const processes = plan.processes.map((process) => ({
    ...process,
    clients: process.clients.map((client) => ({ ...client, operations: client.operations.map(lasting) })),
  }));
  return { ...plan, processes };
}
